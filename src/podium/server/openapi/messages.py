"""Types whose fields are known from protobuf alone: reviews, and further versions of kinds.

They become the same types as stand in `podium.api.schemas`, with the module of their message before the name:
`autoscaling_v1.HorizontalPodAutoscaler`. How their lists are merged is not known; kubectl replaces those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.api.schemas.schema import Field, Fields, Leaf, ListOf, MapOf, Object, Type, is_type
from podium.server.protobuf import messages
from podium.server.protobuf.messages import Message, message_of

_LEAVES: Mapping[str, Type] = {
    "json": Leaf("any"),
    "microtime": Leaf("time"),
    "values": ListOf(Leaf("str")),
}
# Of these the schemas know more.
_SHARED = ("core", "meta")
_TYPE_META = {"apiVersion": Field(Leaf("str")), "kind": Field(Leaf("str"))}


def type_of(api_version: str, kind: str) -> Object | None:
    """The type of a kind in a version; None for one that protobuf does not know."""
    message = message_of(api_version, kind)
    return None if message is None else Object(f"{message.module}.{message.name}")


def fields_of(name: str) -> Fields:
    """The fields of a type by its name with the module before it."""
    module, _, message = name.partition(".")
    found = dict(_fields(Message(module, message)))
    return {**_TYPE_META, **found} if "metadata" in found else found


def _fields(message: Message) -> Iterator[tuple[str, Field]]:
    for field in messages.fields_of(message).values():
        if field.name:
            yield field.name, Field(_type(field))
        elif isinstance(field.type, Message):
            yield from _fields(field.type)


def _type(field: messages.Field) -> Type:
    found = field.type
    if isinstance(found, str):
        single = _LEAVES.get(found, Leaf(found))
    elif found.module in _SHARED and is_type(found.name):
        single = Object(found.name)
    else:
        single = Object(f"{found.module}.{found.name}")
    return ListOf(single) if field.is_list else MapOf(single) if field.is_map else single
