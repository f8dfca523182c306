"""Help pages of the command line, drawn without rich, which alone would take as long to load as
everything else together.

A page has usage, purpose, arguments and options by panel, commands, and the epilog, in which a line
`command<TAB>purpose` is an example. Every option but a flag has a metavar.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

Function = TypeVar("Function", bound=Callable[..., Any])

WIDEST = 100
_GAP = 2
_INDENT = " " * 2
_TIE = "\N{NO-BREAK SPACE}"
_LONGEST_TERM = 28  # an option that is longer has its purpose on the next line
# A line of a note that goes on in the next: wrapped again for the width of the terminal.
_UNFINISHED = re.compile(r"^(\S[^\t\n]*[^.:\t\n])\n(?=\S)(?![^\n]*\t)", re.MULTILINE)


def epilog(examples: Sequence[tuple[str, str]], note: str = "") -> str:
    """Examples, and a note for the end of a help page."""
    lines = [f"{command}\t{purpose}" for command, purpose in examples]
    return "\n".join(["Examples:", *lines, *(["", note] if note else [])])


def page(command: Any, context: Any) -> str:
    """The help page of a command or of a group of commands, as wide as the terminal."""
    width = min(WIDEST, max(40, shutil.get_terminal_size().columns))
    parts = [_usage(command, context, width)]
    parts.append(_wrapped(" ".join((command.help or "").split()), width, _INDENT))
    sections: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(context):
        if not getattr(one, "hidden", False):
            is_option = one.param_type_name == "option"
            usual = "Options" if is_option else "Arguments"
            panel = getattr(one, "rich_help_panel", None) or usual
            sections.setdefault(panel, []).append((_term(one), _purpose(one)))
    if isinstance(command, TyperGroup):
        known = [(name, command.get_command(context, name)) for name in command.commands]
        sections["Commands"] = [
            (name, " ".join((one.help or "").split())) for name, one in known if one is not None
        ]
    for heading, rows in sections.items():
        parts.append("\n".join([_bold(f"{heading}:"), *_rows(rows, width)]))
    if command.epilog:
        parts.append("\n".join(_end(command.epilog, width)))
    return "\n\n".join(parts).replace(_TIE, " ") + "\n"


def _usage(command: Any, context: Any, width: int) -> str:
    words = ["Usage:", context.command_path, "[OPTIONS]"]
    for one in command.get_params(context):
        if one.param_type_name == "argument":
            name = _name(one)
            words.append(name if one.required else f"[{name}]")
    words += ["COMMAND ..."] if isinstance(command, TyperGroup) else []
    text = textwrap.fill(" ".join(words), width, subsequent_indent=_INDENT)
    return text.replace(words[0], _bold(words[0]), 1)


def _name(argument: Any) -> str:
    return f"{argument.metavar}{'' if argument.nargs == 1 else '...'}"


def _term(one: Any) -> str:
    if one.param_type_name == "argument":
        return _name(one)
    names = ", ".join(sorted(one.opts, key=len))
    return names if one.is_flag else f"{names} {one.metavar}"


def _purpose(one: Any) -> str:
    text = one.help or ""
    if one.required:
        return text if one.param_type_name == "argument" else f"{text} (required)"
    value = one.default.value if isinstance(one.default, Enum) else one.default
    if value is None or value is False or value == "":
        return text
    return f"{text} (default:{_TIE}{value})"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    widest = max((len(t) for t, _ in rows if len(t) <= _LONGEST_TERM), default=_LONGEST_TERM)
    column = len(_INDENT) + widest + _GAP
    for term, purpose in rows:
        lines = textwrap.wrap(purpose, width - column, break_on_hyphens=False)
        if len(term) <= widest and lines:
            yield f"{_INDENT}{term:{widest + _GAP}}{lines.pop(0)}"
        else:
            yield _INDENT + term
        yield from (" " * column + line for line in lines)


def _end(text: str, width: int) -> Iterator[str]:
    """Examples, aligned with their purposes, or above them if that does not fit; and notes."""
    lines = [line.split("\t") for line in _UNFINISHED.sub(r"\1 ", text).splitlines()]
    examples = [parts for parts in lines if len(parts) == 2]
    column = max((len(command) for command, _ in examples), default=0) + len(_INDENT) + _GAP
    beside = all(column + len(purpose) <= width for _, purpose in examples)
    for parts in lines:
        if len(parts) == 1:
            line = parts[0]
            indent = " " * (len(line) - len(line.lstrip()))
            is_heading = line.endswith(":") and not indent
            yield _bold(line) if is_heading else _wrapped(line.strip(), width, indent)
        elif beside:
            yield f"{_INDENT + parts[0]:{column}}{_dim(parts[1])}"
        else:
            yield _INDENT + parts[0]
            yield _dim(_wrapped(parts[1], width, _INDENT * 3))


def _wrapped(text: str, width: int, indent: str) -> str:
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _bold(text: str) -> str:
    return text if os.environ.get("NO_COLOR") else typer.style(text, bold=True)


def _dim(text: str) -> str:
    return text if os.environ.get("NO_COLOR") else typer.style(text, dim=True)


class _Command(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(page(self, ctx))


class _Group(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(page(self, ctx))


class App(typer.Typer):
    """Commands with help pages as above."""

    def __init__(self, **more: Any) -> None:
        super().__init__(cls=_Group, rich_markup_mode=None, **more)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Function], Function]:
        return super().command(name, cls=_Command, **more)
