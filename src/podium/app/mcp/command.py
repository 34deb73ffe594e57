"""`podium mcp`."""

from __future__ import annotations

import hmac
import socket
import time
from typing import TYPE_CHECKING, Any

import click

from podium.app.console.command import Command, CommandFailure, option
from podium.app.console.options import Source, settings_options, source_options, validate_option

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.app.inputs import DecisionSettings
    from podium.app.mcp.tools import Tools

_LOOPBACK = "127.0.0.1"
_INSTRUCTIONS = (
    "Podium decides as kube-scheduler does, about a copy of one Kubernetes cluster; no tool changes anything. Ask "
    "overview first. Tell the user the caveats of an answer: they say what it could not know."
)
_EPILOG = """
\b
Examples: the entry of an assistant's configuration; a server for several assistants
  {"mcpServers": {"podium": {"command": "podium", "args": ["mcp", "--context", "production"]}}}
  podium mcp -f cluster.podium --port 8931 --token-file token
"""


@click.command(cls=Command, epilog=_EPILOG)
@source_options
@validate_option
@settings_options
@option("--port", "Serve HTTP on this port of 127.0.0.1, at /mcp; 0 chooses one.", type=click.IntRange(0, 65535))
@option("--token-file", "The token that HTTP clients must send; only its owner may read it.", metavar="FILE")
def mcp(
    *,
    source: Source,
    validation: Validation | None,
    settings: DecisionSettings,
    port: int | None,
    token_file: str | None,
) -> None:
    """Answer an assistant's questions about a cluster, by the Model Context Protocol.

    The tools explain pods, find out what is pending and what fits, and predict deployments, drains, failures and other
    changes. They are read-only: the cluster is read once, and again when the assistant asks for it. Without --port the
    server speaks on standard input and output, and ends with its client. Needs the package mcp: pip install
    'podium[mcp]'.
    """
    from podium.app.cluster import Cluster
    from podium.app.console.reading import read_shown

    if (port is None) != (token_file is None):
        raise click.UsageError("Give both --port and --token-file, or neither: what other users reach needs a token.")
    try:
        import mcp as _  # noqa: F401 - found here, so that the error says what to do
    except ImportError:
        raise CommandFailure("podium mcp needs the package mcp: pip install 'podium[mcp]'") from None
    from podium.app.mcp.tools import Tools

    source = source.needed()
    server = server_of(Tools(lambda: Cluster(read_shown(source, validation), settings), time.time_ns))
    if port is None or token_file is None:
        server.run("stdio")
    else:
        _serve(server, port, token_file)


def server_of(tools: Tools) -> Any:
    """Return an MCPServer of the SDK with the tools. Their errors name what was wrong and what would be right."""
    from inspect import signature
    from typing import get_type_hints

    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import ToolAnnotations

    from podium.api.errors import PodiumError

    def refusing(tool: Any) -> Any:
        def call(**arguments: Any) -> Any:
            try:
                return tool(**arguments)
            except PodiumError as error:
                raise ToolError(str(error)) from None

        # The SDK reads name, description and the schemas of arguments and answer from these.
        call.__name__, call.__doc__, call.__annotations__ = tool.__name__, tool.__doc__, get_type_hints(tool)
        call.__signature__ = signature(tool, eval_str=True)  # type: ignore[attr-defined]
        return call

    annotations = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    made = [Tool.from_function(refusing(tool), annotations=annotations) for tool in tools.functions()]
    for tool in made:
        # The SDK ignores arguments that a tool does not have; here they are errors.
        arguments = tool.fn_metadata.arg_model
        arguments.model_config["extra"] = "forbid"
        arguments.model_rebuild(force=True)
        tool.parameters = arguments.model_json_schema()
    return MCPServer("podium", instructions=_INSTRUCTIONS, log_level="WARNING", tools=made)


def _serve(server: Any, port: int, token_file: str) -> None:
    import uvicorn

    from podium.server.http.security import read_token

    app, token = server.streamable_http_app(host=_LOOPBACK), f"Bearer {read_token(token_file)}".encode()

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] != "http" or hmac.compare_digest(given, token):
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
        await send({"type": "http.response.body", "body": b""})

    try:
        opened = socket.create_server((_LOOPBACK, port))
    except OSError as error:
        raise CommandFailure(f"{_LOOPBACK}:{port} cannot be opened: {error.strerror or error}") from None
    click.echo(f"serving MCP at http://{_LOOPBACK}:{opened.getsockname()[1]}/mcp", err=True)
    uvicorn.Server(uvicorn.Config(with_token, log_level="warning")).run([opened])
