"""Whether the server is well: `/healthz`, `/livez` and `/readyz`.

Source: apiserver (pkg/server/healthz/healthz.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from podium.server.http.replies import Reply, of_text

Check = tuple[str, Callable[[], str]]
"""Something that has to be well: its name, and what tells what is wrong with it, "" for nothing."""

_PLACES = ("healthz", "livez", "readyz")
_WELL: Check = ("ping", lambda: "")


class Health:
    """Answers who asks whether all is well. What is wrong is told to nobody but by name."""

    def __init__(self, checks: Iterable[Check], is_stopping: Callable[[], bool]) -> None:
        stopping: Check = ("shutdown", lambda: "the server is stopping" if is_stopping() else "")
        further = list(checks)
        self._checks = {
            "healthz": [_WELL, *further],
            "livez": [_WELL],
            "readyz": [_WELL, *further, stopping],
        }

    def reply(self, path: str, query: Sequence[tuple[str, str]]) -> Reply | None:
        """The answer at a path; None where no health is asked for."""
        place, _, name = path[1:].partition("/")
        if place not in _PLACES:
            return None
        checks = self._checks[place]
        if name:
            checks = [check for check in checks if check[0] == name]
            if not checks:
                return None
        left_out = {value for parameter, value in query if parameter == "exclude"}
        results = [(of, _result(tell) if of not in left_out else None) for of, tell in checks]
        is_verbose = any(parameter == "verbose" for parameter, _ in query)
        return of_text(*told(place, results, is_verbose=is_verbose))


def told(
    place: str, results: Sequence[tuple[str, str | None]], *, is_verbose: bool, tells_reasons: bool = False
) -> tuple[str, int]:
    """What is said at a place about the results of checks, and the code of the answer.

    A result is "" for what is well, None for what was not looked at. Only those are told the reasons who can do
    something about them.
    """
    is_well = not any(problem for _, problem in results)
    if is_well and not is_verbose:
        return "ok", 200
    lines = [_line(of, problem, tells_reasons=tells_reasons) for of, problem in results]
    lines.append(f"{place} check {'passed' if is_well else 'failed'}")
    return "".join(f"{line}\n" for line in lines), 200 if is_well else 500


def _result(tell: Callable[[], str]) -> str:
    try:
        return tell()
    except Exception as error:
        return str(error) or type(error).__name__


def _line(name: str, problem: str | None, *, tells_reasons: bool) -> str:
    if problem is None:
        return f"[+]{name} excluded: ok"
    if problem:
        return f"[-]{name} failed: {problem if tells_reasons else 'reason withheld'}"
    return f"[+]{name} ok"
