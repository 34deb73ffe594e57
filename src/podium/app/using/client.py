"""The client of a session: it sends a command line with its terminal, and waits for the exit code.

It imports little, since it runs before every question.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.app.using.session import SessionServer

COMMANDS = ("explain", "plan")
"""The commands that a session answers if their command line names no cluster."""

LENGTH_BYTES = 4
"""The number of bytes of a request's length, which come first, with the file descriptors of the terminal."""

INTERRUPT = b"i"
_COMPLETION = "_PODIUM_COMPLETE"

answering: SessionServer | None = None
"""In the process that answers a question: its session."""


class NotForSessionError(BaseException):
    """The command line names a cluster, so that the session is not meant."""


def identity() -> list[str]:
    """Return what a client and its session must have in common: the environment, its Python and the package."""
    return [sys.prefix, sys.version, os.path.dirname(__file__)]


def socket_path() -> str:
    """Return the path of the user's socket, which may be missing."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    # Others write into this folder, too: `is_private` checks the one in it.
    base, name = (runtime, "podium") if runtime else (os.environ.get("TMPDIR") or "/tmp", f"podium-{os.getuid()}")  # noqa: S108
    return os.path.join(base, name, "session")


def is_private(path: str) -> bool:
    """Return whether the socket's folder is no link, belongs to this user, and admits no other one."""
    try:
        found = os.lstat(os.path.dirname(path))
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def send(request: dict[str, Any], descriptors: Sequence[int] = (0, 1, 2)) -> dict[str, Any] | None:
    """Send a request to the session and return its reply; None without a session.

    Ctrl-C interrupts the question; the client still waits for the reply.
    """
    path = socket_path()
    if not os.path.exists(path) or not is_private(path):
        return None
    text = json.dumps({"identity": identity(), **request}, ensure_ascii=False).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
            socket.send_fds(connection, [len(text).to_bytes(LENGTH_BYTES)], descriptors)
            connection.sendall(text)
        except OSError:
            # Nothing listens any more, or standard input or output is closed.
            return None
        received = b""
        while True:
            try:
                part = connection.recv(1 << 16)
            except KeyboardInterrupt:
                connection.sendall(INTERRUPT)
                continue
            except ConnectionResetError:
                part = b""
            if not part:
                break
            received += part
    reply: dict[str, Any] = json.loads(received) if received else {"error": "the process of podium use has ended"}
    return reply


def answer_command(words: Sequence[str]) -> int | None:
    """Let the session answer a command line, and return the exit code; None if this process has to answer.

    A session that is outdated is started again.
    """
    is_question = any(word in COMMANDS for word in words[:2]) or _COMPLETION in os.environ
    if answering is not None or not is_question or not os.path.exists(socket_path()):
        return None
    mask = os.umask(0o077)
    os.umask(mask)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    try:
        request = {
            "ask": {
                "words": list(words),
                "folder": os.getcwd(),
                "mask": mask,
                "path": sys.path,
                "environment": {name: value for name, value in os.environ.items() if _is_text(name + value)},
                "encodings": [stream.encoding for stream in streams],
            }
        }
        descriptors = [stream.fileno() for stream in streams]
        reply = send(request, descriptors)
    except (AttributeError, OSError, ValueError):
        # Standard input or output is closed, the folder is gone, or a word is not in UTF-8.
        return None
    if reply is not None and "outdated" in reply and _COMPLETION not in os.environ:
        from podium.app.using.session import use_again

        use_again(reply["outdated"])
        reply = send(request, descriptors)
    if reply is not None and "error" in reply:
        print(f"podium: error: {reply['error']}", file=sys.stderr)
        return 1
    return None if reply is None else reply.get("code")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
