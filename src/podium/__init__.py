"""Podium: which pods of a Kubernetes cluster run, wait and are disrupted.

    >>> import podium
    >>> cluster = podium.load("cluster.json")            # files, dictionaries or typed objects
    >>> cluster.explain("web-7d4f")                      # what kube-scheduler would do with a pod, and why
    >>> cluster.with_(node).explain("web-7d4f")          # and if something were otherwise
    >>> cluster.simulate(until="1h")                     # what happens in virtual time
    >>> cluster.plan().drain("node-3")                   # what a drain would do to each workload
    >>> cluster.sweep({"start-delay": ["0s", "30s"]})    # one run for each setting, compared

`explain`, `simulate`, `plan` and `sweep` load and ask at once. What is wrong with what they are given raises
`PodiumError`. Answers are shown in a notebook as in a terminal, have `to_dict()` for programs, and give tables to
pandas, polars and pyarrow with `frame(name)`.

Times in results are seconds, since the start of a run where they say when; amounts of `cpu` are thousandths, all
others whole units (bytes of memory).

`podium.plugin` is for those who write plugins of schedulers, `podium.policy` for policies of reschedulers, and
`podium.testing` for those who test what they wrote for Kubernetes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.api.errors import PodiumError
    from podium.app.cluster import Cluster
    from podium.app.library import explain, load, plan, simulate, sweep

__all__ = ["Cluster", "PodiumError", "explain", "load", "plan", "simulate", "sweep"]

_MODULES = ("plugin", "policy", "testing")
_PLACES = {"PodiumError": "podium.api.errors", "Cluster": "podium.app.cluster"}


def __getattr__(name: str) -> Any:
    """Import what there is when it is first asked for, so that the command line starts fast."""
    if name in _MODULES:
        return import_module(f"podium.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_PLACES.get(name, "podium.app.library")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))])
