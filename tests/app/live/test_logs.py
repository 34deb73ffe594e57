"""The form of a log line, whatever text names contain."""

import io
import json

import pytest

from podium.app.live.logs import Log
from tests.store.objects import SECOND

HOSTILE = "web\n2026 error forged \x1b[31mred\u202e"


def test_text_is_one_line_that_no_terminal_acts_on() -> None:
    stream = io.StringIO()

    Log(lambda: SECOND, stream=stream).warning(f"about {HOSTILE}", pod=HOSTILE, count=3)

    [line] = stream.getvalue().splitlines()
    assert line.startswith("1970-01-01T00:00:01Z warning about web\\n2026 error forged \\x1b[31mred")
    assert line.endswith(" count=3")
    assert line.isprintable()


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    log = Log(lambda: SECOND, "json", stream=stream)

    log.info("first", pod=HOSTILE)
    log.error("second")

    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["msg"], second["level"]) == ("info", "first", "error")
    assert first["pod"].isprintable()


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 1), (2, 2)])
def test_the_requested_log_level_is_written(verbosity: int, lines: int) -> None:
    stream = io.StringIO()
    log = Log(lambda: 0, verbosity=verbosity, stream=stream)

    log.info("usual")
    log.info("more", verbosity=2)

    assert len(stream.getvalue().splitlines()) == lines
