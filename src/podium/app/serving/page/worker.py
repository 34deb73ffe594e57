"""The process that answers one question.

Standard input has two frames, each preceded by its length: the `RunOptions`, pickled by the process that started this
one, and the question in JSON; then the objects, a List in JSON. Standard output has lines of JSON: `progress` with the
share that is done, and at last `answer` or `error`; an `answer` may come in parts. A process that is started in advance
waits for its question.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

import msgspec

from podium.api.errors import PodiumError
from podium.api.input.codec import Reader
from podium.app.forking import throttled
from podium.app.serving.page.questions import answer_question
from podium.framework.settings.registry import refusing_new_classes
from podium.sim.run_options import RunOptions

LENGTH_BYTES = 8
"""The number of bytes of a frame's length, the highest first."""

PATIENCE_SECONDS = 300
"""How long it waits for a question."""

MEMORY_BYTES = 4 * 1024**3
"""The maximum memory of an answer."""

CPU_SECONDS = 300
"""The maximum CPU time of an answer; the server gives up sooner."""

_NICE = 10
_SOURCE = "the cluster"
_SHARE_OF_READING = 0.1


def main() -> int:
    """Answer the question; return the exit code."""
    _limit()
    source = sys.stdin.buffer
    if not select.select([source], [], [], PATIENCE_SECONDS)[0]:
        return 0
    output = sys.stdout.buffer
    # Output of plugins goes to standard error, so that it is not part of the answer.
    sys.stdout = sys.stderr
    options: RunOptions
    options, places = pickle.loads(_frame(source))  # noqa: S301 - the parent process wrote it
    question = msgspec.json.decode(_frame(source))
    with refusing_new_classes(places):
        _send(output, _outcome(question, source.read(), options, partial(_send, output)))
    return 0


def _outcome(question: Any, objects: bytes, options: RunOptions, send: Callable[[Any], None]) -> dict[str, Any]:
    progress = throttled(lambda share, what: send({"progress": round(share, 3), "what": what}))
    try:
        with Reader("ignore") as reader:
            reader.read_text(objects, _SOURCE, lambda share: progress(share * _SHARE_OF_READING, "reading the cluster"))
            read = reader.input()
        rest = 1 - _SHARE_OF_READING
        answer = answer_question(
            read,
            question["question"],
            question["values"],
            options,
            lambda share, what: progress(_SHARE_OF_READING + rest * share, what),
            lambda part: send({"answer": part}),
        )
    except PodiumError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"the answer takes more than {MEMORY_BYTES // 1024**3} GiB of memory"}
    return {"answer": answer}


def _limit() -> None:
    with suppress(OSError):
        os.nice(_NICE)
    limits = {resource.RLIMIT_AS: MEMORY_BYTES, resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_CORE: 0}
    for what, most in limits.items():
        # A lower limit of the system remains.
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(what)[1]
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _frame(stream: BinaryIO) -> bytes:
    head = stream.read(LENGTH_BYTES)
    length = int.from_bytes(head)
    data = stream.read(length)
    if len(head) < LENGTH_BYTES or len(data) < length:
        raise EOFError
    return data


def _send(output: BinaryIO, value: Any) -> None:
    output.write(json.dumps(value, separators=(",", ":")).encode() + b"\n")
    output.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EOFError:
        # The parent process has closed the pipe.
        sys.exit(0)
