"""What the names of files say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]
STANDARD = "-"  # the path of standard input and output


def suffix(path: PathLike) -> str:
    """What the name of a file ends in, in lower case and without .gz: '.tsp' of 'a280.tsp.gz'."""
    return Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def stem(path: PathLike) -> str:
    """The name of a file without folder, .gz and suffix: 'a280' of 'x/a280.tsp.gz'."""
    name = os.path.basename(os.fspath(path))
    return Path(name[:-3] if name.lower().endswith(".gz") else name).stem
