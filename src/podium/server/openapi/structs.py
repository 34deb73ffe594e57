"""The schema of a kind that is Podium's own, made from the struct that reads it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from podium.api.meta import Kubernetes, Raw

_INT_OR_STRING = {"x-kubernetes-int-or-string": True}
# What msgspec adds, and OpenAPI or kubectl has no use for.
_LEFT_OUT = ("title", "default", "additionalProperties", "anyOf", "$ref")
_CODE = re.compile(r"`+")


def schema_of_struct(type_: type[Kubernetes]) -> Raw:
    """The schema of a struct with all that is in it in its place; the metadata is left to the caller."""
    (root,), definitions = msgspec.json.schema_components([type_], ref_template="{name}")
    schema = _plain(root, definitions)
    for name in ("apiVersion", "kind", "metadata"):
        schema["properties"].pop(name, None)
    return schema


def _plain(schema: Raw, definitions: Raw) -> Raw:
    if "$ref" in schema:
        return _plain(definitions[schema["$ref"]], definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    types = sorted(str(choice.get("type")) for choice in choices)
    if types == ["integer", "string"]:
        return dict(_INT_OR_STRING)
    if len(choices) == 1:
        return _plain(choices[0], definitions)
    if choices:
        return {"x-kubernetes-preserve-unknown-fields": True}
    plain = {name: value for name, value in schema.items() if name not in _LEFT_OUT and value != []}
    if "description" in plain:
        plain["description"] = _text(plain["description"])
    if "properties" in plain:
        plain["properties"] = {name: _plain(one, definitions) for name, one in plain["properties"].items()}
    if isinstance(plain.get("items"), dict):
        plain["items"] = _plain(plain["items"], definitions)
    if isinstance(plain.pop("prefixItems", None), list):
        plain.pop("items", None)
    return plain


def _text(description: Any) -> str:
    return _CODE.sub("", " ".join(str(description).split()))
