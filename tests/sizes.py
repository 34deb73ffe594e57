"""How large everything is that some objects hold, found by walking them.

Sizes are by path, such as `scheduler.cluster.placed`: entries of dictionaries, lists and the like, and of arrays. What
lies behind entries is added up over all of them: `scheduler.queue.entries{}.record` is one path, however many entries
there are. An object that can be reached in several ways counts where it is reached first, the nearest first.

Four things are not looked into:

- Kubernetes objects, typed or as plain dictionaries: they are values without state of components.
- What is held weakly.
- `FREE`: lists of free places; they belong to arrays, which are counted, free places and others alike.
- `RECORDS`: what is there to tell afterwards what happened, and grows with what happens; and logs of a stated length.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

import msgspec
import numpy as np

from podium.cluster.arrays import BoundedLog
from podium.controllers.disruption.drain import DrainReport
from podium.sim.history import EventHistory
from podium.sim.results.measures import Meters
from podium.sim.scenario.scenario import Scenario

FREE = "_free"
RECORDS = (EventHistory, Meters, Scenario, DrainReport, BoundedLog)
_VALUES = (
    str,
    bytes,
    int,
    float,
    type(None),
    type,
    ModuleType,
    msgspec.Struct,
    ref,
    np.generic,
    msgspec.msgpack.Encoder,
)


def sizes(**roots: object) -> Counter[str]:
    """Return the sizes of all that the roots hold, by path."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: deque[tuple[str, object]] = deque(roots.items())
    while waiting:
        path, one = waiting.popleft()
        if id(one) in seen or _is_value(one):
            continue
        seen.add(id(one))
        size = _size(one)
        if size:
            found[path] += size
        waiting.extend((path + step, part) for step, part in _parts(one))
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the paths that have become larger, with both sizes."""
    return {path: (before.get(path, 0), size) for path, size in sorted(after.items()) if size > before.get(path, 0)}


def _is_value(one: object) -> bool:
    if isinstance(one, (*_VALUES, *RECORDS)):
        return True
    if isinstance(one, deque):
        return one.maxlen is not None
    return isinstance(one, dict) and isinstance(one.get("metadata"), dict)


def _size(one: object) -> int:
    if isinstance(one, Mapping):
        return len(one)
    if isinstance(one, list | tuple | set | frozenset | deque):
        return sum(not isinstance(part, RECORDS) for part in one)
    return one.size if isinstance(one, np.ndarray) else 0


def _parts(one: object) -> Iterator[tuple[str, object]]:
    if isinstance(one, Mapping):
        for key, value in one.items():
            yield "{key}", key
            yield "{}", value
    if isinstance(one, list | tuple | set | frozenset | deque):
        for part in one:
            yield "[]", part
    elif isinstance(one, FunctionType):
        for cell in one.__closure__ or ():
            yield "()", cell.cell_contents
    elif isinstance(one, MethodType):
        yield "", one.__self__
    elif isinstance(one, partial):
        yield from (("()", part) for part in (one.func, *one.args, *one.keywords.values()))
    else:
        yield from ((f".{name}", value) for name, value in _attributes(one) if name != FREE)


def _attributes(one: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(one, "__dict__", {}).items()
    for base in type(one).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(one, name):
                yield name, getattr(one, name)
