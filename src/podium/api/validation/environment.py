"""The environment of a container (core/validation, ValidateEnv and ValidateEnvFrom)."""

from __future__ import annotations

import re

from podium.api.names import label_key_problem, subdomain_problem
from podium.api.validation import finding
from podium.api.validation.formats import config_key_problem, environment_name_problem
from podium.api.validation.place import Place

_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
# An older name of a field that is still taken.
_ALIASES = {"spec.host": "spec.nodeName"}
_RESOURCES = tuple(
    f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPTED = re.compile(r"(metadata\.(?:labels|annotations))\['([^']*)'\]")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def check_environment(container: Place) -> None:
    """The variables of a container, and where they come from."""
    for variable in container.objects("env"):
        name = variable.text("name")
        if name:
            variable.check("name", environment_name_problem(name))
        else:
            variable.required("name")
        origin = variable.child("valueFrom")
        if origin is not None:
            _check_origin(origin, bool(variable.text("value")))
    for group in container.objects("envFrom"):
        _check_group(group)


def check_field_reference(place: Place, name: str, fields: tuple[str, ...]) -> None:
    """A field of the pod, one of those, or one label or annotation (validateObjectFieldSelector)."""
    reference = place.child_or_empty(name)
    path = reference.text("fieldPath")
    if not path:
        reference.required("fieldPath")
        return
    subscripted = _SUBSCRIPTED.fullmatch(path)
    if subscripted:
        key = subscripted[2]
        reference.check("", label_key_problem(key.lower() if "annotations" in subscripted[1] else key))
    elif _ALIASES.get(path, path) not in fields:
        reference.report(finding.unsupported(reference.path("fieldPath"), path, fields))


def check_resource_reference(place: Place, name: str, needs_container: bool = False) -> None:
    """A request or a limit of a container (validateContainerResourceFieldSelector)."""
    reference = place.child_or_empty(name)
    resource = reference.text("resource")
    if needs_container and not reference.text("containerName"):
        reference.required("containerName")
    elif not resource:
        reference.required("resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        reference.report(finding.unsupported(reference.path("resource"), resource, _RESOURCES))


def _check_origin(origin: Place, has_value: bool) -> None:
    given = [name for name in _SOURCES if origin.has(name)]
    if "fieldRef" in given:
        check_field_reference(origin, "fieldRef", _FIELDS)
    if "resourceFieldRef" in given:
        check_resource_reference(origin, "resourceFieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in given:
            _check_key(origin.child_or_empty(name))
    if not given:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        origin.invalid("", "", f"must specify one of: {kinds}")
    elif has_value:
        origin.invalid("", "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        origin.invalid("", "", "may not have more than one field specified at a time")


def _check_key(reference: Place) -> None:
    reference.check("name", subdomain_problem(reference.text("name")))
    key = reference.text("key")
    if key:
        reference.check("key", config_key_problem(key))
    else:
        reference.required("key")


def _check_group(group: Place) -> None:
    prefix = group.text("prefix")
    group.check("prefix", environment_name_problem(prefix))
    given = [name for name in ("configMapRef", "secretRef") if group.has(name)]
    for name in given:
        reference = group.child_or_empty(name)
        if reference.text("name"):
            reference.check("name", subdomain_problem(reference.text("name").removesuffix("-")))
        else:
            reference.required("name")
    if not given:
        group.invalid("", "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        group.invalid("", "", "may not have more than one field specified at a time")
