"""The cluster autoscaler of a scenario, as it is written there.

spec:
  autoscaler:
    priorityCutoff: 0
    nodeGroups:
    - {name: pool, min: 0, max: 3, startUp: 1m, template: {status: {allocatable: {cpu: "4"}}}}
    scaleDown: {utilizationThreshold: 0.5, unneededTime: 10m, delayAfterAdd: 10m}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.errors import InputError, shown
from podium.api.input.codec import decode
from podium.api.meta import Raw
from podium.decide.scaling.node_groups import NodeGroup
from podium.machines.autoscaling.autoscaler import AutoscalerSettings
from podium.sim.scenario.fields import Fields


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """The groups that nodes may be added to and taken from, and how that is done."""

    groups: tuple[NodeGroup, ...]
    settings: AutoscalerSettings


def read_autoscaling(given: Fields) -> Autoscaling:
    """What a scenario says of its autoscaler. Raises InputError with the field's path for what is wrong or unknown."""
    plain = AutoscalerSettings()
    groups = _groups(given.list_of_fields("nodeGroups"))
    if not groups:
        raise InputError("is missing; name at least one group of nodes", path=f"{given.path}.nodeGroups")
    cutoff = given.number("priorityCutoff", plain.priority_cutoff)
    scan_ns = given.duration_ns("scanInterval", plain.scan_interval_ns)
    down = given.fields("scaleDown") if given.has("scaleDown") else Fields({}, "")
    settings = AutoscalerSettings(
        scan_interval_ns=scan_ns,
        priority_cutoff=cutoff,
        utilisation_threshold=down.share("utilizationThreshold", plain.utilisation_threshold),
        unneeded_ns=down.duration_ns("unneededTime", plain.unneeded_ns),
        delay_after_add_ns=down.duration_ns("delayAfterAdd", plain.delay_after_add_ns),
        max_drains=down.number("maxDrains", plain.max_drains, least=1),
        max_eviction_ns=down.duration_ns("maxEvictionTime", plain.max_eviction_ns),
        max_graceful_termination_ns=down.duration_ns("maxGracefulTermination", plain.max_graceful_termination_ns),
    )
    down.refuse_others()
    given.refuse_others()
    return Autoscaling(groups, settings)


def _groups(listed: Sequence[Fields]) -> tuple[NodeGroup, ...]:
    found: dict[str, NodeGroup] = {}
    for fields in listed:
        name = fields.text("name")
        if name in found:
            raise InputError(f"{shown(name)} is given twice", path=f"{fields.path}.name")
        least = fields.number("min", 0, least=0)
        found[name] = NodeGroup(
            name=name,
            minimum=least,
            maximum=fields.number("max", least=max(1, least)),
            start_up_ns=fields.duration_ns("startUp", 0),
            template=_template(fields.take("template"), f"{fields.path}.template", name),
        )
        fields.refuse_others()
    return tuple(found.values())


def _template(given: object, path: str, group: str) -> Raw:
    """The template of a group's nodes, which must be a Node but for its name."""
    if not isinstance(given, dict):
        raise InputError(f"{shown(given)} is not an object", path=path)
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InputError(f"{shown(metadata)} is not an object", path=f"{path}.metadata")
    node: Raw = {"apiVersion": "v1", "kind": "Node", **given}
    try:
        decode({**node, "metadata": {**metadata, "name": f"{group}-0"}})
    except InputError as error:
        # The name comes from the group's.
        place = path.replace(".template", ".name") if error.path == ".metadata.name" else path + error.path
        raise InputError(error.problem, path=place) from None
    return node
