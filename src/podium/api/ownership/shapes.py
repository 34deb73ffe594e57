"""How the values of a kind are put together for those who own parts of them: what is one thing, and what has parts.

Most of that follows from the schemas (`podium.api.schemas`): objects have fields, lists that strategic merge patch
merges by a field are told apart by it, all other lists are one thing. Where server-side apply sees it otherwise stands
here, as the listType, listMapKey and mapType marks of k8s.io/api v0.36 have it (client-go, applyconfigurations).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Literal

from podium.api.schemas.schema import Field, ListOf, MapOf, Object, Type, fields_of
from podium.api.structural.structural import TYPE_FIELDS, Structural


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """How one value is put together.

    `one` is one thing, whatever is in it. `map` has `fields` with names of their own, and under other keys values like
    `value`. The items of a `list` are told apart by `keys`, where `defaults` stand for those that an item leaves out;
    those of a `set` by themselves.
    """

    form: Literal["one", "map", "list", "set"]
    fields: Mapping[str, Shape] = field(default_factory=dict)
    value: Shape | None = None
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)


ONE = Shape("one")
SET = Shape("set", item=ONE)

_ATOMIC_STRUCTS = frozenset(
    (
        *("ConfigMapKeySelector", "CrossVersionObjectReference", "EndpointAddress", "EndpointPort", "FileKeySelector"),
        *("LabelSelector", "LocalObjectReference", "MatchResources", "NamedRuleWithOperations", "NodeSelector"),
        *("NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "OwnerReference", "ParamKind", "ParamRef"),
        *("ResourceFieldSelector", "RoleRef", "ScopeSelector", "SecretKeySelector", "SecretReference"),
        *("ServiceBackendPort", "Subject", "TopologySelectorTerm", "TypedLocalObjectReference", "Variable"),
    )
)
_ATOMIC_MAPS = frozenset(
    (
        ("PodSpec", "nodeSelector"),
        ("ReplicationControllerSpec", "selector"),
        ("Scheduling", "nodeSelector"),
        ("ServiceSpec", "selector"),
    )
)
_GRANULAR = frozenset((("PersistentVolumeSpec", "claimRef"),))
# None is a list that is one thing, () one that is a set.
_LIST_KEYS: Mapping[tuple[str, str], tuple[str, ...] | None] = {
    ("AllocatedDeviceStatus", "conditions"): ("type",),
    ("CSIDriverSpec", "volumeLifecycleModes"): (),
    ("Container", "ports"): ("containerPort", "protocol"),
    ("ContainerRestartRuleOnExitCodes", "values"): (),
    ("EphemeralContainer", "ports"): ("containerPort", "protocol"),
    ("JobStatus", "conditions"): None,
    ("NodeAllocatableResourceClaimStatus", "containers"): (),
    ("PodFailurePolicyOnExitCodesRequirement", "values"): (),
    ("PodSpec", "topologySpreadConstraints"): ("topologyKey", "whenUnsatisfiable"),
    ("PodStatus", "hostIPs"): None,
    ("PodStatus", "nodeAllocatableResourceClaimStatuses"): ("resourceClaimName",),
    ("ResourceClaimStatus", "devices"): ("driver", "device", "pool", "shareID"),
    ("ResourceRequirements", "claims"): ("name",),
    ("ResourceStatus", "resources"): ("resourceID",),
    ("ServiceSpec", "ports"): ("port", "protocol"),
    ("UncountedTerminatedPods", "failed"): (),
    ("UncountedTerminatedPods", "succeeded"): (),
}
_DEFAULTS = {"protocol": "TCP"}


ANYTHING = Shape("map")
"""Objects of which nothing is known: whatever keys they have, with values of which nothing is known either."""


@cache
def shape_of_type(name: str) -> Shape:
    """The shape of a type of Kubernetes' own. Raises KeyError for one that there is not."""
    if name in _ATOMIC_STRUCTS:
        return ONE
    return Shape("map", fields={key: _of_field(name, key, of) for key, of in fields_of(name).items()})


def _of_field(owner: str, name: str, of: Field) -> Shape:
    if (owner, name) in _ATOMIC_MAPS:
        return ONE
    if (owner, name) in _GRANULAR and isinstance(of.type, Object):
        return Shape("map", fields={key: _of(inner.type) for key, inner in fields_of(of.type.name).items()})
    if not isinstance(of.type, ListOf):
        return _of(of.type)
    own = None if of.merge_key is None else ((of.merge_key,) if of.merge_key else ())
    keys = _LIST_KEYS.get((owner, name), own)
    if keys is None:
        return ONE
    return _list(of.type.item, keys) if keys else SET


def _list(item: Type, keys: tuple[str, ...]) -> Shape:
    defaults = {key: _DEFAULTS[key] for key in keys if key in _DEFAULTS}
    return Shape("list", item=_of(item), keys=keys, defaults=defaults)


def _of(type_: Type) -> Shape:
    match type_:
        case Object(name):
            return shape_of_type(name)
        case MapOf(value):
            return Shape("map", value=_of(value))
        case _:
            return ONE if isinstance(type_, ListOf) or type_.type != "any" else ANYTHING


@lru_cache(maxsize=256)
def shape_of_structural(node: Structural) -> Shape:
    """The shape of the objects of a custom kind."""
    fields = {name: _of_node(inner) for name, inner in node.properties.items() if name not in TYPE_FIELDS}
    metadata = {"apiVersion": ONE, "kind": ONE, "metadata": shape_of_type("ObjectMeta")}
    return Shape("map", fields={**fields, **metadata}, value=_values(node))


def _of_node(node: Structural) -> Shape:
    if node.type == "array":
        if node.list_type == "atomic" or node.items is None:
            return ONE
        if node.list_type == "set":
            return SET
        defaults = {key: node.items.properties[key].said.get("default") for key in node.list_keys}
        told = {key: value for key, value in defaults.items() if value is not None}
        return Shape("list", item=_of_node(node.items), keys=node.list_keys, defaults=told)
    if node.is_atomic_map:
        return ONE
    if node.type == "object" or node.properties or node.keeps_unknown:
        fields = {name: _of_node(inner) for name, inner in node.properties.items()}
        return Shape("map", fields=fields, value=_values(node))
    return ONE


def _values(node: Structural) -> Shape | None:
    return None if node.values is None or node.values.keeps_unknown else _of_node(node.values)
