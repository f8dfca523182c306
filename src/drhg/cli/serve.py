"""`drhg serve`: the service and the live page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.report import say
from drhg.cli.shell import BAD_INPUT, STOP, option
from drhg.errors import DrhgError
from drhg.parallel import cores
from drhg.service.limits import ServiceLimits

app = App()
SCHEME = "http"
USUAL = ServiceLimits()
WHERE, ALLOWED, KEPT = "Where to listen", "What is allowed", "What is kept"


@app.command(
    epilog=epilog(
        [
            ("drhg serve --open", "the live page, in the browser"),
            ("drhg serve --store solves.db", "results survive a restart"),
            ("drhg serve --host 0.0.0.0 --token-file token", "for others, who need the token"),
        ],
        "Needs the extra `serve`: pip install 'drhg[serve]'. The page is at /, the description of\n"
        "the interface at /openapi.json, the limits at /limits.",
    )
)
def serve(
    host: Annotated[
        str,
        option(WHERE, "--host", metavar="ADDRESS",
               help="Where to listen; others than this machine need a token."),
    ] = "127.0.0.1",
    port: Annotated[
        int, option(WHERE, "-p", "--port", min=0, max=65535, metavar="PORT", help="0: a free one.")
    ] = 8000,
    token_file: Annotated[
        Path | None,
        option(WHERE, "--token-file", metavar="FILE",
               help="Clients must send what is in this file: Authorization: Bearer TOKEN."),
    ] = None,
    open_page: Annotated[bool, option(WHERE, "--open", help="Open the page in a browser.")] = False,
    workers: Annotated[
        int | None,
        option(ALLOWED, "-w", "--workers", min=1, max=256, metavar="N",
               help="Solves at a time, one core each; by default one per core."),
    ] = None,
    queue: Annotated[
        int, option(ALLOWED, "--queue", min=0, metavar="N", help="Solves that may wait.")
    ] = USUAL.queue,
    max_nodes: Annotated[
        int, option(ALLOWED, "--max-nodes", min=1, metavar="N", help="Of an instance.")
    ] = USUAL.nodes,
    max_seconds: Annotated[
        float, option(ALLOWED, "--max-seconds", min=0.001, metavar="SECONDS", help="Of a solve.")
    ] = USUAL.seconds,
    max_bytes: Annotated[
        int, option(ALLOWED, "--max-bytes", min=1000, metavar="N", help="Of a request.")
    ] = USUAL.body,
    store: Annotated[
        Path | None,
        option(KEPT, "--store", metavar="FILE",
               help="Keep solves in this SQLite file, so that they survive a restart."),
    ] = None,
    keep: Annotated[
        float,
        option(KEPT, "--keep", min=1, metavar="SECONDS", help="How long results are kept."),
    ] = USUAL.keep_seconds,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only errors.")] = False,
) -> None:  # fmt: skip
    """Solve for other programs, over HTTP, and show the search live on a page."""
    limits = ServiceLimits(
        nodes=max_nodes, seconds=max_seconds, queue=queue, body=max_bytes, keep_seconds=keep,
        default_seconds=min(USUAL.default_seconds, max_seconds),
    )  # fmt: skip
    try:
        from drhg.service import server
    except ModuleNotFoundError as error:
        raise DrhgError(f"{error.name} is not installed: pip install 'drhg[serve]'") from None
    token = None if token_file is None else server.read_token(token_file)
    listening = server.bound(host, port)
    address = f"{SCHEME}://{_shown(host)}:{listening.getsockname()[1]}/"
    if not quiet:
        say(f"listening on {address} (Ctrl-C ends it)")
    if open_page:
        import webbrowser

        webbrowser.open(address)
    sys.stderr.flush()
    server.serve(
        listening, limits, workers=workers or cores(), store=store, token=token, quiet=quiet
    )
    raise typer.Exit(STOP.exit_code or BAD_INPUT)


def _shown(host: str) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host
