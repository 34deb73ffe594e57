"""A CustomResourceDefinition: what it is completed with, and the kind that it defines.

Source: apiextensions-apiserver (pkg/apis/apiextensions/v1/defaults.go, pkg/controller/status and establish).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.structural.structural import Structural, read_structural
from podium.store.api_resource import APIResource, ScalePaths
from podium.store.conditions import with_condition

KIND = "CustomResourceDefinition"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""What holds a definition that is deleted until the objects of its kind are gone."""

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}


@dataclass(frozen=True, slots=True)
class Defined:
    """A kind as its definition has it: how it is served, and the schemas of its versions by `apiVersion`."""

    resource: APIResource
    schema: Raw
    structurals: Mapping[str, Structural]


def completed(raw: Raw) -> Raw:
    """The definition with the names that follow from others."""
    spec = raw.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not isinstance(names.get("kind"), str):
        return raw
    kind = names["kind"]
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {**raw, "spec": {"conversion": {"strategy": "None"}, **spec, "names": names}}


def with_judged_names(raw: Raw, clash: tuple[str, str] | None, now: int) -> Raw:
    """The definition with what its status says of its names: accepted, or that one `clash`es, which one and why."""
    names, status = raw["spec"]["names"], raw.get("status", {})
    storage = next(version["name"] for version in raw["spec"]["versions"] if version.get("storage"))
    stored = status.get("storedVersions") or []
    conditions = status.get("conditions", ())
    if clash is None:
        accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        established = _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        accepted = _condition("NamesAccepted", "False", clash[0], f'"{clash[1]}" is already in use')
        established = _condition("Established", "False", "NotAccepted", "not all names are accepted")
        if _is(conditions, "Established"):
            established = {}
    for condition in (accepted, established):
        if condition:
            conditions = with_condition(conditions, condition, now)
    return {
        **raw,
        "status": {
            **status,
            "conditions": list(conditions),
            "acceptedNames": names if clash is None else status.get("acceptedNames", {"kind": "", "plural": ""}),
            "storedVersions": stored if storage in stored else [*stored, storage],
        },
    }


def as_terminating(raw: Raw, now: int) -> Raw:
    """The definition while the objects of its kind go."""
    metadata, status = raw["metadata"], raw.get("status", {})
    finalizers = metadata.get("finalizers", [])
    reason, message = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
    terminating = _condition("Terminating", "True", reason, message)
    return {
        **raw,
        "metadata": {**metadata, "finalizers": finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]},
        "status": {**status, "conditions": with_condition(status.get("conditions", ()), terminating, now)},
    }


def is_established(raw: Raw) -> bool:
    """Whether the kind is served."""
    return _is(raw.get("status", {}).get("conditions", ()), "Established")


def kind_name(spec: Raw) -> str:
    """What the store calls the kind that a definition makes."""
    return f"{spec['names']['kind']}.{spec['group']}"


def clash_of(raw: Raw, others: list[Raw]) -> tuple[str, str] | None:
    """The name of a definition that another of its group has already, and the reason as a condition gives it."""
    names = raw["spec"]["names"]
    plurals: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        taken = other.get("status", {}).get("acceptedNames", {})
        plurals |= {taken.get("plural"), taken.get("singular"), *taken.get("shortNames", ())}
        kinds |= {taken.get("kind"), taken.get("listKind")}
    # Of several that clash, the last one is told, as upstream does.
    found: tuple[str, str] | None = None
    for field, used in (("plural", plurals), ("singular", plurals), ("shortNames", plurals), ("kind", kinds)):
        told = names.get(field) or ()
        clash = next((name for name in ([told] if isinstance(told, str) else told) if name in used), None)
        if clash is not None:
            found = f"{field[0].upper()}{field[1:]}Conflict", clash
    return ("ListKindConflict", names["listKind"]) if names.get("listKind") in kinds else found


def defined(raw: Raw) -> Defined:
    """The kind of a definition that is right."""
    spec, names = raw["spec"], raw["spec"]["names"]
    group = spec["group"]
    versions = spec["versions"]
    storage = next(version for version in versions if version.get("storage"))
    served = sorted((version["name"] for version in versions if version.get("served")), key=_rank)
    subresources = storage.get("subresources") or {}
    scale = subresources.get("scale")
    resource = APIResource(
        group=group,
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        version=storage["name"],
        has_status="status" in subresources,
        has_scale=bool(scale),
        is_custom=True,
        selectable=tuple((field["jsonPath"].removeprefix("."), "") for field in storage.get("selectableFields", ())),
        served=tuple(f"{group}/{name}" for name in served),
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        scale_paths=_scale_paths(scale) if scale else None,
        columns={
            f"{group}/{version['name']}": tuple(version.get("additionalPrinterColumns", ())) for version in versions
        },
        deprecations={
            f"{group}/{version['name']}": version.get("deprecationWarning")
            or f"{group}/{version['name']} {names['kind']} is deprecated"
            for version in versions
            if version.get("deprecated")
        },
    )
    structurals = {
        f"{group}/{version['name']}": read_structural(version["schema"]["openAPIV3Schema"]) for version in versions
    }
    return Defined(resource, storage["schema"]["openAPIV3Schema"], structurals)


def unheeded(raw: Raw) -> list[str]:
    """What a definition asks for and does not get: rules that are not known here."""
    found: list[str] = []
    for index, version in enumerate(raw["spec"]["versions"]):
        root = read_structural(version["schema"]["openAPIV3Schema"])
        waiting = [(root, f"spec.versions[{index}].schema.openAPIV3Schema")]
        while waiting:
            node, path = waiting.pop()
            for number, rule in enumerate(node.rules):
                if rule.program is None:
                    found.append(f"{path}.x-kubernetes-validations[{number}].rule is not enforced: {rule.problem}")
            waiting += [(inner, f"{path}.properties[{name}]") for name, inner in node.properties.items()]
            waiting += [(inner, f"{path}.{name}") for name, inner in _below(node)]
    return found


def _below(node: Structural) -> list[tuple[str, Structural]]:
    pairs = (("additionalProperties", node.values), ("items", node.items))
    return [(name, inner) for name, inner in pairs if inner is not None]


def _scale_paths(scale: Raw) -> ScalePaths:
    return ScalePaths(
        spec_replicas=_steps(scale["specReplicasPath"]),
        status_replicas=_steps(scale["statusReplicasPath"]),
        label_selector=_steps(scale.get("labelSelectorPath") or ""),
    )


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split(".")) if path else ()


def _rank(version: str) -> tuple[int, int, int, str]:
    """Where a version stands among others: v2 before v1, those before betas, then alphas, and all else by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return 0, 0, 0, version
    return -1 - _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), version


def _condition(type_: str, status: str, reason: str, message: str) -> Raw:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def _is(conditions: object, type_: str) -> bool:
    return isinstance(conditions, list | tuple) and any(
        condition.get("type") == type_ and condition.get("status") == "True" for condition in conditions
    )
