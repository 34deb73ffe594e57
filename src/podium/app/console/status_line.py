"""One line on standard error that says how far something is, drawn over and over, and wiped away at the end."""

from __future__ import annotations

import os
import sys
import time
from threading import RLock
from types import TracebackType
from typing import Any, Self, TextIO

from podium.api.errors import escape

# Of a terminal that does not tell its own.
_WIDTH = 80
_BAR = 40
_NARROWEST_BAR = 8
_LONGEST = 500
_WIPE = "\r\x1b[2K"
_DIM, _GOOD, _PLAIN = "\x1b[2m", "\x1b[36m", "\x1b[0m"
# What is known of the time that is left before so much is done is no more than a guess.
_LEAST_SHARE = 0.02
# How much of the bar moves along it while nobody knows how much there is to do, and how far in a second.
_MOVING = 8
_CELLS_PER_SECOND = 16


class StatusLine:
    """The line, from entering it to leaving it. What others write to standard error meanwhile stands above it."""

    def __init__(self) -> None:
        self._stream: TextIO = sys.stderr
        self._above = _Above(self._stream, self)
        self._began = time.monotonic()
        # When it was first known how much is done, and how much that was.
        self._first: tuple[float, float] | None = None
        self._full, self._empty = _signs(self._stream)
        self._lock = RLock()
        self._is_drawn = False
        self._is_within_line = False
        self._is_broken = False

    def __enter__(self) -> Self:
        sys.stderr = self._above
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if sys.stderr is self._above:
            sys.stderr = self._stream
        with self._lock:
            self._wipe()

    def draw(self, what: str, share: float | None) -> None:
        """Draw it anew; a share of None: nobody knows how much there is to do."""
        with self._lock:
            if self._is_broken or self._is_within_line:
                return
            self._send(_WIPE + self._text(escape(what, _LONGEST), share))
            self._is_drawn = True

    def write_above(self, text: str) -> int:
        """Write a text of somebody else's, and draw nothing while it stands within a line."""
        with self._lock:
            self._wipe()
            written = self._stream.write(text)
            self._is_within_line = not text.endswith("\n")
            return written

    def _wipe(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._send(_WIPE)

    def _send(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # A terminal that went away is told nothing; what the command has to say is not here.
            self._is_broken = True

    def _text(self, what: str, share: float | None) -> str:
        behind = "" if share is None else f" {share:4.0%}{self._left(share)}"
        # The last column stays free: some terminals begin the next line there.
        room = _columns(self._stream) - 1 - len(behind)
        width = min(_BAR, room - len(what) - 1)
        if width < _NARROWEST_BAR:
            return (what + behind)[: room + len(behind)]
        return f"{what} {self._bar(width, share)}{behind}"

    def _bar(self, width: int, share: float | None) -> str:
        if share is None:
            moved = int((time.monotonic() - self._began) * _CELLS_PER_SECOND)
            begin = moved % (width + _MOVING) - _MOVING
            done = [begin <= place < begin + _MOVING for place in range(width)]
        else:
            done = [place < round(width * share) for place in range(width)]
        bar = "".join(self._full if is_done else self._empty for is_done in done)
        if os.environ.get("NO_COLOR"):
            return bar
        first = done.index(True) if True in done else 0
        last = first + sum(done)
        return f"{_DIM}{bar[:first]}{_PLAIN}{_GOOD}{bar[first:last]}{_PLAIN}{_DIM}{bar[last:]}{_PLAIN}"

    def _left(self, share: float) -> str:
        """How long it takes from now on if it goes on as it did so far, as in ` 0:00:07`."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, share)
        done = share - self._first[1]
        if done < _LEAST_SHARE or share >= 1:
            return ""
        left = round((now - self._first[0]) * (1 - share) / done)
        return f" {left // 3600}:{left // 60 % 60:02}:{left % 60:02}"


class _Above:
    """Standard error, as others have it while the line is there."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        return self._line.write_above(text) if text else self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for text in lines:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _columns(stream: TextIO) -> int:
    """How wide the terminal is to which the stream goes."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    except (OSError, ValueError, AttributeError):
        return _WIDTH


def _signs(stream: TextIO) -> tuple[str, str]:
    """What bars are made of: what is done, and what is not, as the terminal's encoding and colours tell them apart."""
    try:
        "━".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "#", "-"
    return ("━", "─") if os.environ.get("NO_COLOR") else ("━", "━")
