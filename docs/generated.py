"""Pages that are written from the package itself, so that they cannot differ from it.

A page holds a line `<!-- generated: NAME -->`, and Sphinx reads what `PAGES[NAME]` returns instead:
the help of every command, the reference of everything public, the catalogue of errors. When the
site is built, `llms.txt` lists its pages with a sentence about each.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import typer

import drhg
from drhg import errors
from drhg.cli import EXIT_CODES, app
from drhg.cli.help_pages import page
from drhg.cli.shell import BAD_INPUT

SOURCE = Path(drhg.__file__).parent
MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)

# --- the command line ----------------------------------------------------------------------------


def commands() -> str:
    """Every command with its help page, as the command prints it."""
    os.environ["COLUMNS"] = "90"
    group: Any = typer.main.get_command(app)
    top = typer.Context(group, info_name="drhg")
    parts = [_fenced(page(group, top))]
    for name in group.list_commands(top):
        command = group.get_command(top, name)
        below = typer.Context(command, info_name=name, parent=top)
        parts.append(f"## drhg {name}\n\n{_fenced(page(command, below))}")
    return "\n\n".join(parts)


def _fenced(text: str) -> str:
    plain = re.sub(r"\x1b\[\d*m", "", text)
    return f"```text\n{plain.strip()}\n```"


# --- Python --------------------------------------------------------------------------------------

ROOMS = {  # headings of the reference, by where a name comes from
    "Solve": ("session",),
    "Problems and solutions": ("problem",),
    "Files": ("files",),
    "Search methods": ("search.regions", "search.tours", "search.routes", "search.strategy",
                       "local_search"),
    "Destroy": ("destroy",),
    "Repair": ("search.repairers",),
    "Accept": ("search.criteria",),
    "Errors": ("errors",),
}  # fmt: skip
OTHERS = "More"


def public() -> dict[str, list[str]]:
    """Every public name under its heading."""
    found: dict[str, list[str]] = {heading: [] for heading in [*ROOMS, OTHERS]}
    for name in drhg.__all__:
        home = getattr(drhg, name).__module__.removeprefix("drhg.")
        headings = [heading for heading, rooms in ROOMS.items() if home.startswith(rooms)]
        found[headings[0] if headings else OTHERS].append(name)
    return {heading: sorted(names, key=_order) for heading, names in found.items() if names}


def _order(name: str) -> tuple[int, str]:
    """Functions first, then what they take and return, then parameters."""
    thing = getattr(drhg, name)
    return (2 if name.endswith("Params") else 1 if inspect.isclass(thing) else 0, name)


def reference() -> str:
    """Directives that document every public name from its docstring."""
    parts = []
    for heading, names in public().items():
        directives = "\n\n".join(_directive(name) for name in names)
        parts.append(f"## {heading}\n\n```{{eval-rst}}\n{directives}\n```")
    return "\n\n".join(parts)


def _directive(name: str) -> str:
    thing = getattr(drhg, name)
    if not inspect.isclass(thing):
        return f".. autofunction:: drhg.{name}"
    if issubclass(thing, Exception):
        return f".. autoexception:: drhg.{name}"
    lines = [f".. autoclass:: drhg.{name}", "   :members:"]
    return "\n".join([*lines, "   :undoc-members:" if _is_plain(thing) else ""]).strip()


def _is_plain(thing: type) -> bool:
    """Whether its members have no docstrings of their own but should be listed."""
    return thing.__name__ == "Metric"


def fields_of(lines: list[str]) -> list[str]:
    """A docstring in our style (`name: what it is`, continued by indented lines) as field lists."""
    out: list[str] = []
    inside = example = False
    for line in lines:
        example = line.startswith(">>>") or (example and bool(line.strip()))
        found = None if example else re.match(r"([a-z]\w*(?:, [a-z]\w*)*): +(\S.*)$", line)
        if found:
            if not inside and out and out[-1].strip():
                out.append("")
            out.append(f":param {found[1].replace(', ', ',')}: {found[2]}")  # else a type
            inside = True
        else:
            if inside and line.strip() and not line.startswith(" "):
                out.append("")
            inside = inside and (not line.strip() or line.startswith(" "))
            out.append(line)
    return out


def _docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = fields_of(lines)


def _signature(
    app: Any, what: str, name: str, obj: Any, options: Any, given: str | None, back: str | None
) -> tuple[str | None, str | None]:
    """Aliases of types by their names, also where autodoc joins them with others."""
    named = [
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (given, back)
    ]
    return named[0], named[1]


# --- errors --------------------------------------------------------------------------------------


def kinds() -> list[type[errors.DrhgError]]:
    """`DrhgError` and everything derived from it that the package exports."""
    found = [thing for thing in vars(errors).values() if inspect.isclass(thing)]
    kept = [thing for thing in found if issubclass(thing, errors.DrhgError)]
    return sorted(kept, key=lambda kind: (len(kind.__mro__), kind.__name__))


def exit_codes() -> dict[str, str]:
    """What each exit code says, as the help of `drhg` has it."""
    text = re.sub(r"\n {5,}", " ", EXIT_CODES)
    rows = [re.split(r"  +", line.strip(), maxsplit=1) for line in text.splitlines()[1:]]
    return {row[0]: row[1] for row in rows}


def messages() -> Iterator[tuple[str, str, str]]:
    """Module, kind and text of every error that the source raises."""
    names = {kind.__name__ for kind in kinds()}
    for path in sorted(SOURCE.rglob("*.py")):
        home = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names and node.args:
                text = _shown(node.args[0])
                if text is not None and re.search(r"[a-z]{3}", text):
                    yield home, ast.unparse(node.func), text


def _shown(node: ast.expr) -> str | None:
    """The text of an f-string, with an ellipsis for each of its values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values]
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _shown(node.left), _shown(node.right)
        return None if left is None and right is None else f"{left or '…'}{right or '…'}"
    return None


def catalogue() -> str:
    """Exit codes, kinds of errors, and every message by the room that it comes from."""
    parts = ["## Exit codes", _table(("code", "what it says"), exit_codes().items())]
    rows = [(f"`drhg.{kind.__name__}`", _first(kind), str(BAD_INPUT)) for kind in kinds()]
    parts += ["## Kinds", _table(("Python", "what it says", "exit code"), rows), "## Messages"]
    by_room: dict[str, list[tuple[str, str, str]]] = {}
    for home, kind, text in messages():
        by_room.setdefault(home.split(".")[0], []).append((text, kind, home))
    for room in sorted(by_room):
        told = sorted({(f"{_cell(text)}", f"`{kind}`") for text, kind, _ in by_room[room]})
        parts += [f"### From `drhg.{room}`", _table(("message", "kind"), told)]
    return "\n\n".join(parts)


def _first(thing: type) -> str:
    return " ".join((thing.__doc__ or "").split("\n\n")[0].split())


def _cell(text: str) -> str:
    return f"`` {' '.join(text.split())} ``".replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- files beside the documentation ---------------------------------------------------------------

INSIDE = {"RESULTS.md": "results.md", "CHANGELOG.md": "changelog.md"}


def file_of_the_repository(name: str) -> str:
    """A page at the root of the repository, with links that hold in the site."""
    text = (SOURCE.parent.parent / name).read_text(encoding="utf-8")

    def moved(link: re.Match[str]) -> str:
        target = link[1].removeprefix("docs/") if link[1].startswith("docs/") else f"../{link[1]}"
        return f"]({INSIDE.get(link[1], target)})"

    return re.sub(r"\]\((?![a-z]+:)([^)#\s]+)\)", moved, text)


# --- into the site -------------------------------------------------------------------------------

PAGES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "reference": reference,
    "errors": catalogue,
    "results": partial(file_of_the_repository, "RESULTS.md"),
    "changelog": partial(file_of_the_repository, "CHANGELOG.md"),
    "contributing": partial(file_of_the_repository, "CONTRIBUTING.md"),
    "security": partial(file_of_the_repository, "SECURITY.md"),
}


def _read(app: Any, name: str, source: list[str]) -> None:
    text = MARK.sub(lambda found: PAGES[found[1]](), source[0])
    for outside, inside in INSIDE.items():
        text = text.replace(f"](../{outside}", f"]({inside}")
    # A link that reads as a file's name has the title of that page instead.
    source[0] = re.sub(r"\[[\w/]+\.md\]\(([\w/.]+\.md(?:#[\w-]+)?)\)", r"[](\1)", text)


def _index_for_machines(app: Any, error: Exception | None) -> None:
    """`llms.txt`: the pages in the order of the site, each with its first sentence."""
    if error is not None or app.builder.format != "html":
        return
    lines = ["# drhg", "", f"> {drhg.__doc__ or ''}".split("\n")[0], ""]
    for name in _in_order(app.env, app.config.root_doc):
        title = app.env.titles[name].astext()
        sentence = _sentence(app.env.get_doctree(name))
        lines.append(f"- [{title}]({name}.html): {sentence}")
    text = "\n".join(lines) + "\n"
    (Path(app.outdir) / "llms.txt").write_text(text, encoding="utf-8")


def _in_order(env: Any, name: str) -> Iterator[str]:
    for below in env.toctree_includes.get(name, []):
        yield below
        yield from _in_order(env, below)


def _sentence(tree: Any) -> str:
    from docutils import nodes

    for paragraph in tree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return re.split(r"(?<=\.) ", text)[0]
    return ""


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("build-finished", _index_for_machines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
