"""Which PriorityClasses are let in (plugin/pkg/admission/priority, pkg/apis/scheduling/validation)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.api.policy import PriorityClass
from podium.api.schemas.suggestion import suggestion
from podium.store.api_resource import APIResource
from podium.store.errors import StoreError, forbidden, invalid

SYSTEM_CLASSES: Mapping[str, int] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that every cluster has (pkg/apis/scheduling/types.go)."""

_RESERVED = "system-"


def check_priority_class(resource: APIResource, new: PriorityClass) -> None:
    """Raise StoreError 422 for a name of the system's that is not one of its classes."""
    name = new.metadata.name
    if name.startswith(_RESERVED) and (new.value != SYSTEM_CLASSES.get(name) or new.global_default):
        known = ", ".join(f"{known} ({value})" for known, value in SYSTEM_CLASSES.items())
        problem = f"priority class names with 'system-' prefix are reserved for system use only: {known}, no default"
        raise invalid(resource, name, problem, "metadata.name", "FieldValueForbidden")


def check_default_class(resource: APIResource, new: PriorityClass, classes: Iterable[PriorityClass]) -> None:
    """Raise StoreError 403 for a second default among the cluster's `classes`."""
    default = default_class(classes)
    if new.global_default and default is not None and default.metadata.name != new.metadata.name:
        problem = f"PriorityClass {default.metadata.name} is the default already; only one can exist"
        raise forbidden(resource, new.metadata.name, problem)


def default_class(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    """The class of pods that name none; of several defaults, which a cluster can come to have, the lowest."""
    defaults = (class_ for class_ in classes if class_.global_default)
    return min(defaults, key=lambda priority_class: (priority_class.value, priority_class.metadata.name), default=None)


def priority_of(name: str, classes: Mapping[str, PriorityClass]) -> int | None:
    """The priority that a class has, the system's included; None for one that does not exist."""
    found = classes.get(name)
    return SYSTEM_CLASSES.get(name) if found is None else found.value


def unknown_class(resource: APIResource, key: str, name: str, classes: Mapping[str, PriorityClass]) -> StoreError:
    """The refusal of an object that names a class which does not exist."""
    hint = suggestion(name, sorted({*classes, *SYSTEM_CLASSES}))
    return forbidden(resource, key, f"no PriorityClass with name {name} was found; {hint}")
