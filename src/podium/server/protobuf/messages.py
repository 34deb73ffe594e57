"""The messages of Kubernetes in protobuf: which field stands at which number.

They stand as text in `podium.server.protobuf.fields`, one module for each API group, as facts of the generated.proto
files and the types beside them, in this form:

    Deployment
      metadata=1:meta.ObjectMeta spec=2:DeploymentSpec

A message, then its fields: the name in JSON, the number, and the type: text where nothing is said, else `int`, `long`,
`bool`, `float`, `bytes`, `quantity`, `share`, `time`, `microtime`, `json`, `values` (a list of text in a message of its
own), a message of the same module or of another, `[...]` for a list, `{...}` for a map. A field without a name has
its message's fields in the place of itself. `!` marks a field that says something though it is 0, "" or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import NamedTuple

from podium.server.protobuf.fields import (
    admissionregistration,
    apps,
    authentication,
    authorization,
    autoscaling_v1,
    autoscaling_v2,
    batch,
    certificates,
    coordination,
    core,
    discovery,
    events,
    meta,
    networking,
    node,
    policy,
    rbac,
    resource,
    scheduling,
    scheduling_v1alpha2,
    storage,
)

_API_VERSIONS: Mapping[str, ModuleType] = {
    "v1": core,
    "admissionregistration.k8s.io/v1": admissionregistration,
    "apps/v1": apps,
    "authentication.k8s.io/v1": authentication,
    "authorization.k8s.io/v1": authorization,
    "autoscaling/v1": autoscaling_v1,
    "autoscaling/v2": autoscaling_v2,
    "batch/v1": batch,
    "certificates.k8s.io/v1": certificates,
    "coordination.k8s.io/v1": coordination,
    "discovery.k8s.io/v1": discovery,
    "events.k8s.io/v1": events,
    "networking.k8s.io/v1": networking,
    "node.k8s.io/v1": node,
    "policy/v1": policy,
    "rbac.authorization.k8s.io/v1": rbac,
    "resource.k8s.io/v1": resource,
    "scheduling.k8s.io/v1": scheduling,
    "scheduling.k8s.io/v1alpha2": scheduling_v1alpha2,
    "storage.k8s.io/v1": storage,
}
# Every group has these.
_IN_EVERY_GROUP = ("DeleteOptions", "Status")
# What is a part of other objects has metadata too.
_PARTS = ("JobTemplateSpec", "PersistentVolumeClaimTemplate", "PodTemplateSpec", "ResourceClaimTemplateSpec")
_MODULES = {module.__name__.rpartition(".")[2]: module for module in (*_API_VERSIONS.values(), meta)}
LEAVES = frozenset(
    ("bool", "bytes", "float", "int", "json", "long", "microtime", "quantity", "share", "str", "time", "values")
)
"""The types that are no messages of the modules."""


class Message(NamedTuple):
    """A message, by the module that has it and its name there."""

    module: str
    name: str


class Field(NamedTuple):
    """One field: its name in JSON ("" for one whose fields stand in its place) and its type.

    `is_list` and `is_map` say what it holds of that type. A field that `says_zero` says something though it is 0, ""
    or empty.
    """

    name: str
    type: str | Message
    is_list: bool = False
    is_map: bool = False
    says_zero: bool = False


def message_of(api_version: str, kind: str) -> Message | None:
    """The message that objects of a kind are; None for a kind that is not known here."""
    module = meta if kind in _IN_EVERY_GROUP else _API_VERSIONS.get(api_version)
    if module is None or kind not in _written(module):
        return None
    return Message(module.__name__.rpartition(".")[2], kind)


def kinds() -> list[tuple[str, str]]:
    """The versions and kinds of all objects that are known here."""
    return [
        (api_version, name)
        for api_version, module in _API_VERSIONS.items()
        for name, written in _written(module).items()
        if written[:1] in (["metadata=1:meta.ObjectMeta"], ["metadata=1:meta.ObjectMeta!"]) and name not in _PARTS
    ]


@cache
def fields_of(message: Message) -> Mapping[int, Field]:
    """The fields of a message, by number. Raises KeyError for a message that there is not."""
    return dict(_field(written, message.module) for written in _written(_MODULES[message.module])[message.name])


@cache
def _written(module: ModuleType) -> dict[str, list[str]]:
    """The fields of the messages of a module, as they are written."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in module.FIELDS.strip().splitlines():
        if line.startswith(" "):
            found[name].extend(line.split())
        else:
            name = line
            found[name] = []
    return found


def _field(written: str, module: str) -> tuple[int, Field]:
    name, _, rest = written.partition("=")
    says_zero = rest.endswith("!")
    number, _, type_ = rest.removesuffix("!").partition(":")
    is_list, is_map = type_.startswith("["), type_.startswith("{")
    inner = type_.strip("[]{}") or "str"
    if inner in LEAVES:
        return int(number), Field(name, inner, is_list, is_map, says_zero)
    of, _, message = inner.rpartition(".")
    return int(number), Field(name, Message(of or module, message), is_list, is_map, says_zero)
