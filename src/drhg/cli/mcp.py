"""`drhg mcp`: tools for language models."""

from __future__ import annotations

import logging
import sys

from drhg.cli.help_pages import App, epilog
from drhg.errors import DrhgError

app = App()


@app.command(
    epilog=epilog(
        [
            ("drhg mcp", "the command to name where a program asks for an MCP server"),
        ],
        "Tools: check, solve (at most 30 s), start, status, stop, explain.\n"
        "Needs the extra `serve`: pip install 'drhg[serve]'.",
    )
)
def mcp() -> None:
    """Be a tool of a language model, by the Model Context Protocol over stdio."""
    try:
        from drhg.service.mcp import McpServer, Tools
    except ModuleNotFoundError as error:
        raise DrhgError(f"{error.name} is not installed: pip install 'drhg[serve]'") from None
    logging.getLogger("drhg").setLevel(logging.ERROR)
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else may stand between the messages
    McpServer(Tools(), out).run(sys.stdin)
