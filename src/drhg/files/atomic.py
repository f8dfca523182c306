"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat

from drhg.errors import DrhgError
from drhg.files.messages import errors_as, fail
from drhg.files.paths import PathLike


def atomic_write(path: PathLike, content: str | bytes) -> None:
    """Replace a file as a whole or not at all: readers see the old content or the new."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with errors_as(DrhgError, os.fspath(path)):
        try:
            _replace(os.path.realpath(path), data)  # through a symlink, as a plain write would
        except (OSError, ValueError) as error:
            fail(f"cannot be written: {system_reason(error)}")


def _replace(target: str, data: bytes) -> None:
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        fail("cannot be written: not a regular file")
    part = os.path.join(os.path.dirname(target), f".drhg-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(part, flags, 0o666)  # less the umask, as for any new file
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        if mode is not None:
            os.chmod(part, stat.S_IMODE(mode))
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise


def system_reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
