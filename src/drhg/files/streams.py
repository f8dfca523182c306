"""Bytes from files, compressed ones and standard input."""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from io import BytesIO
from typing import BinaryIO

from drhg.files.atomic import system_reason
from drhg.files.messages import NO_TEXT, fail
from drhg.files.paths import STANDARD

LARGEST_FILE = 2 * 10**9  # bytes, of a compressed file also of what is in it
_PIECE = 1 << 20  # bytes that are looked at first


def write_out(data: bytes) -> None:
    try:
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:  # a text stream, in a test or a notebook
            sys.stdout.write(data.decode())
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError) as error:  # full, closed, or none at all
        fail(f"cannot be written: {system_reason(error)}")


def read_binary(name: str) -> bytes:
    """The bytes of a regular file, whatever they are."""
    try:
        with open(name, "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                fail("not a regular file")
            if os.fstat(stream.fileno()).st_size > LARGEST_FILE:
                fail(f"larger than {LARGEST_FILE} bytes")
            return stream.read()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        fail(f"cannot be read: {system_reason(error)}")


def read_bytes(name: str) -> bytes:
    try:
        if name == STANDARD:
            data = _standard_input()
            return _text_of(BytesIO(data), packed=data.startswith(b"\x1f\x8b"))
        # without O_NONBLOCK, opening a FIFO would wait for its writer
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(name, flags)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                fail("not a regular file")
            if status.st_size > LARGEST_FILE:
                fail(f"larger than {LARGEST_FILE} bytes")
            with open(descriptor, "rb", closefd=False) as stream:
                return _text_of(stream, packed=name.lower().endswith(".gz"))
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        fail(f"cannot be read: {system_reason(error)}")


def _standard_input() -> bytes:
    if sys.stdin is None:
        fail("there is none")
    if not hasattr(sys.stdin, "buffer"):  # a text stream, in a test or a notebook
        return sys.stdin.read().encode("utf-8", "surrogatepass")
    data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        fail(f"larger than {LARGEST_FILE} bytes")
    return data


def _text_of(stream: BinaryIO, packed: bool) -> bytes:
    """All bytes of a stream, unpacked; what is too large or no text is never kept as a whole."""
    if not packed:
        _refuse_nul(stream)
        return stream.read()
    try:
        with gzip.GzipFile(fileobj=stream) as inside:
            _refuse_nul(inside)
            return inside.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        fail(f"not a whole .gz file: {error}")


def _refuse_nul(stream: BinaryIO | gzip.GzipFile) -> None:
    """Look for NULs piece by piece and rewind: a large file that is no text is not kept."""
    line, size = 1, 0
    while piece := stream.read(_PIECE):
        at = piece.find(b"\0")
        if at >= 0:
            fail(NO_TEXT, line + piece.count(b"\n", 0, at))
        line += piece.count(b"\n")
        size += len(piece)
        if size > LARGEST_FILE:
            fail(f"larger than {LARGEST_FILE} bytes when unpacked")
    stream.seek(0)
