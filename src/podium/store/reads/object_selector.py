"""Which objects a request is about: those of one kind, perhaps of one namespace, that selectors match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.api.errors import InputError, shown
from podium.api.meta import Raw
from podium.api.selectors import EVERYTHING, FieldSelector, Selector, parse_field_selector, parse_label_selector
from podium.store.api_resource import APIResource
from podium.store.errors import bad_request
from podium.store.stored import Stored

_EVERY_FIELD = FieldSelector()
_NAMES = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class ObjectSelector:
    """The objects of a kind; `namespace` "" means those of all namespaces."""

    resource: APIResource
    namespace: str = ""
    labels: Selector = EVERYTHING
    fields: FieldSelector = _EVERY_FIELD

    @property
    def selects(self) -> bool:
        """Whether selectors leave objects out."""
        return bool(self.labels.requirements or self.fields.requirements)

    def covers(self, stored: Stored) -> bool:
        """Whether the object is one of them."""
        if stored.resource.name != self.resource.name:
            return False
        metadata = stored.object.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if not self.labels.matches(metadata.labels):
            return False
        return not self.fields.requirements or self.fields.matches(_fields(stored))


def read_object_selector(
    resource: APIResource, namespace: str, label_selector: str, field_selector: str
) -> ObjectSelector:
    """The selector that selectors given as text make. Raises StoreError 400 for what they cannot say."""
    try:
        labels, fields = parse_label_selector(label_selector), parse_field_selector(field_selector)
    except InputError as error:
        raise bad_request(str(error)) from None
    known = (*_NAMES, *(name for name, _ in resource.selectable))
    for requirement in fields.requirements:
        if requirement.key not in known:
            choice = ", ".join(known)
            raise bad_request(f"field label not supported: {shown(requirement.key)}; {resource.kind} has {choice}")
    return ObjectSelector(resource, namespace, labels, fields)


def _fields(stored: Stored) -> dict[str, str]:
    metadata = stored.object.metadata
    values = {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}
    for path, default in stored.resource.selectable:
        values[path] = _text(stored.raw, path, default)
    return values


def _text(raw: Raw, path: str, default: str) -> str:
    value: Any = raw
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return default if value is None else str(value)
