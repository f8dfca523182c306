"""`python -m drhg.training train ...`: the training commands without the rest of the program."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from drhg.errors import DrhgError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="drhg.training")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("train", help="train a network on labelled tours")
    command.add_argument("--config", type=Path, required=True)
    command.add_argument("--data", type=Path, required=True, help="folder with shards of labels")
    command.add_argument("--out", type=Path, required=True, help="folder of the run")
    command.add_argument("--resume", action="store_true", help="go on where the run stopped")
    command.add_argument("--minutes", type=float, help="stop after so many minutes")
    command.add_argument("--steps", type=int, help="stop at this step")
    command.add_argument("--init", type=Path, help="weights to start from")
    command.add_argument("--decay", action="store_true", help="bring the rate to zero, then stop")
    command.add_argument("--threads", type=int, default=1)
    command = commands.add_parser("label", help="label uniform instances with good tours")
    command.add_argument("--data", type=Path, required=True, help="folder for the shards")
    command.add_argument("-n", type=int, required=True, help="nodes per instance")
    command.add_argument("--count", type=int, required=True)
    command.add_argument("--seed", type=int, default=0, help="of the first shard")
    command.add_argument("--seconds", type=float, help="per instance")
    command.add_argument("--workers", type=int, default=2)
    options = vars(parser.parse_args(arguments))
    try:
        if options.pop("command") == "label":
            from drhg.training.labels import label

            label(options.pop("data"), **options)
            return 0
        from drhg.training.trainer import read_config, train

        train(read_config(options.pop("config")), **options)
    except DrhgError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
