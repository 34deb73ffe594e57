"""The manifests of `deploy/`, as Kubernetes receives them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

Raw = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "podium"
_LINE = re.compile(r"\{\{-? *(?P<action>if not|if|end) *(?P<value>\.Values\.[\w.]+)? *-?\}\}")
_VALUE = re.compile(r"\{\{ *\.(?P<path>(?:Values|Release)(?:\.\w+)+) *\}\}")


def documents(text: str) -> list[Raw]:
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document is not None]


def base(folder: str = "base") -> list[Raw]:
    """Return the objects of a kustomization that stands on no other, its namespaces apart."""
    (kustomization,) = documents((DEPLOY / folder / "kustomization.yaml").read_text())
    texts = [(DEPLOY / folder / name).read_text() for name in kustomization["resources"]]
    return [document for text in texts for document in documents(text)]


def chart(release: str = "test", namespace: str = "space", **values: Any) -> list[Raw]:
    """Return the objects of the chart, whose templates use conditions and values alone."""
    (given,) = documents((CHART / "values.yaml").read_text())
    known = {"Values": {**given, **values}, "Release": {"Name": release, "Namespace": namespace}}
    texts = [rendered(path.read_text(), known) for path in sorted((CHART / "templates").glob("*.yaml"))]
    return [document for text in texts for document in documents(text)]


def chart_of_rescheduler(**values: Any) -> list[Raw]:
    """Return the objects of the chart that are the rescheduler's."""
    (given,) = documents((CHART / "values.yaml").read_text())
    objects = chart(rescheduler={**given["rescheduler"], "enabled": True, **values})
    return [raw for raw in objects if "-rescheduler" in raw["metadata"]["name"]]


def rendered(template: str, known: Raw) -> str:
    """Return the template with its values, and without the parts that are not wanted. Raises for what it does not
    know.
    """
    lines: list[str] = []
    wanted = [True]
    for line in template.splitlines():
        control = _LINE.fullmatch(line.strip())
        if control is None:
            if all(wanted):
                lines.append(_VALUE.sub(lambda found: str(value(found["path"], known)), line))
        elif control["action"] == "end":
            wanted.pop()
        else:
            is_set = bool(value(control["value"].removeprefix("."), known))
            wanted.append(is_set if control["action"] == "if" else not is_set)
    assert wanted == [True]
    text = "\n".join(lines)
    assert "{{" not in text, text
    return text


def value(path: str, known: Raw) -> Any:
    found: Any = known
    for name in path.split("."):
        found = found[name]
    return found


def of_kind(objects: list[Raw], kind: str) -> list[Raw]:
    return [raw for raw in objects if raw["kind"] == kind]
