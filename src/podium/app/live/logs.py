"""The log of a long-running program: lines on standard error, as text or JSON.

Names and messages of a cluster's objects are untrusted text: control characters and line breaks are escaped. Tokens,
keys and headers are never logged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Literal

from podium.api.errors import escape
from podium.api.times import format_exact_time

Level = Literal["info", "warning", "error"]
Format = Literal["text", "json"]
_MAX_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class Log:
    """A log; ``verbosity`` is the highest verbosity that it writes, as with Kubernetes' `-v`."""

    now: Callable[[], int]
    form: Format = "text"
    verbosity: int = 0
    stream: IO[str] | None = None

    def info(self, message: str, verbosity: int = 0, **values: object) -> None:
        if verbosity <= self.verbosity:
            self._write("info", message, values)

    def warning(self, message: str, **values: object) -> None:
        self._write("warning", message, values)

    def error(self, message: str, **values: object) -> None:
        self._write("error", message, values)

    def _write(self, level: Level, message: str, values: dict[str, object]) -> None:
        time = format_exact_time(self.now() // 1_000 * 1_000)
        if self.form == "json":
            fields = {
                "ts": time,
                "level": level,
                "msg": message,
                **{name: _plain(value) for name, value in values.items()},
            }
            line = json.dumps(fields)
        else:
            rest = "".join(f" {name}={json.dumps(_plain(value))}" for name, value in values.items())
            line = f"{time} {level} {escape(message, _MAX_LENGTH)}{rest}"
        print(line, file=self.stream or sys.stderr, flush=True)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float | bool) or value is None else escape(str(value), _MAX_LENGTH)
