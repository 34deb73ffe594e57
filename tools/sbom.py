"""The dependencies of Podium's wheel in CycloneDX, which the wheel includes (PEP 770).

`python3 tools/sbom.py` writes `deploy/podium.cdx.json` from `requirements/run.txt` and the packages' requirements on
Linux with Python 3.11; `--check` checks the file. It needs Podium's packages: run it with the Python in `.venv`.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "deploy" / "podium.cdx.json"
_LOCK = ROOT / "requirements" / "run.txt"
_LOCKED = re.compile(r"^([\w.-]+)==([\w.+!-]+)", re.MULTILINE)
# The target platform: the list does not depend on where it is made.
_ENVIRONMENT = {
    "extra": "",
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
    "sys_platform": "linux",
}


def needed(project: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Return the packages of a plain installation by name, each with its own requirements."""
    found: dict[str, frozenset[str]] = {}
    waiting = list(_names(project["dependencies"]))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = frozenset(_names(metadata.requires(name) or []))
            waiting += found[name]
    return found


def document() -> dict[str, Any]:
    """Return the list. Raises KeyError for a package that is not locked."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    locked = {
        str(canonicalize_name(name)): version for name, version in _LOCKED.findall(_LOCK.read_text(encoding="utf-8"))
    }
    packages = needed(project)
    own = _reference(project["name"], project["version"])
    references = {name: _reference(name, locked[name]) for name in packages}
    direct = frozenset(_names(project["dependencies"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": reference,
                "name": name,
                "version": locked[name],
                "purl": reference,
            }
            for name, reference in sorted(references.items())
        ],
        "dependencies": [
            {"ref": own, "dependsOn": sorted(references[name] for name in direct)},
            *(
                {"ref": reference, "dependsOn": sorted(references[other] for other in packages[name])}
                for name, reference in sorted(references.items())
            ),
        ],
    }


def main(arguments: list[str]) -> int:
    """Write or check the file; return the exit code."""
    text = json.dumps(document(), indent=1) + "\n"
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if "--check" in arguments:
        print(f"{FILE.relative_to(ROOT)} is not what the lock file says; run tools/sbom.py")
        return 1
    FILE.write_text(text, encoding="utf-8")
    print(f"wrote {FILE.relative_to(ROOT)}")
    return 0


def _names(requirements: list[str]) -> Iterator[str]:
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate(_ENVIRONMENT):
            yield canonicalize_name(requirement.name)


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
