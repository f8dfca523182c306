"""`drhg` and `python -m drhg`: catch signals first, then load the command line."""

from __future__ import annotations

import os
import signal
from typing import NoReturn


def main() -> NoReturn:
    # While modules load there is nothing to save: a signal ends the program without a word.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda signum, frame: os._exit(128 + signum))
    from drhg import cli

    cli.main()


if __name__ == "__main__":
    main()
