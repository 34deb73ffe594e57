"""Which Kubernetes the server is, and which Podium."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from podium.api.meta import Raw

KUBERNETES = "1.36.2"
"""The version whose API is served."""


@cache
def version_info() -> Raw:
    """What `/version` answers (apimachinery's version.Info). Clients compare the number; people see whose it is."""
    major, minor, _ = KUBERNETES.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{KUBERNETES}+podium.{_podium()}",
        "gitCommit": "",
        "gitTreeState": f"podium {_podium()}",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def _podium() -> str:
    try:
        return version("podium")
    except PackageNotFoundError:
        return "0.0.0"
