"""Which version of a kind an object is converted to, and by what.

Custom kinds are converted by their `apiVersion` alone (the strategy None of their definitions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.api.meta import Raw
from podium.api.pod_group_forms import OLDER_VERSION, from_older_form, in_older_words, to_older_form
from podium.store.api_resource import APIResource
from podium.store.conversion.autoscalers import to_v1, to_v2
from podium.store.conversion.events import core_selector, to_core, to_events_group
from podium.store.errors import StoreError

_CONVERSIONS: Mapping[str, tuple[Callable[[Raw], Raw], Callable[[Raw], Raw]]] = {
    "events.k8s.io/v1": (to_events_group, to_core),
    "autoscaling/v1": (to_v1, to_v2),
    OLDER_VERSION: (to_older_form, lambda raw: from_older_form(raw, "scheduling.k8s.io/v1alpha2")),
}
"""By the `apiVersion` that is served: from the version that is stored, and back."""


def converted(resource: APIResource, raw: Raw, api_version: str) -> Raw:
    """An object of the version that is stored as one of the version that is asked for; "" is the stored one."""
    if api_version in ("", raw["apiVersion"]):
        return raw
    conversion = None if resource.is_custom else _CONVERSIONS.get(api_version)
    return {**(raw if conversion is None else conversion[0](raw)), "apiVersion": api_version}


def as_stored(resource: APIResource, raw: Raw, api_version: str) -> Raw:
    """An object of the version that was asked for as one of the version that is stored."""
    if api_version in ("", resource.api_version):
        return raw
    conversion = None if resource.is_custom else _CONVERSIONS.get(api_version)
    return {**(raw if conversion is None else conversion[1](raw)), "apiVersion": resource.api_version}


def stored_selector(field_selector: str, api_version: str) -> str:
    """A field selector over objects of a version as one over the objects that are stored."""
    return core_selector(field_selector) if api_version == "events.k8s.io/v1" else field_selector


def refused_as(error: StoreError, api_version: str) -> StoreError:
    """A refusal of an object of a version, which names the fields that are stored, with the fields of that version."""
    return error.reworded(in_older_words) if api_version == OLDER_VERSION else error
