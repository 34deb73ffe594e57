"""Nodes, and what storage drivers say about them (core/validation, ValidateNode; pkg/apis/storage/validation)."""

from __future__ import annotations

from podium.api.names import label_key_problem, label_value_problem, subdomain_problem
from podium.api.validation.amounts import check_amounts
from podium.api.validation.formats import cidr_problem
from podium.api.validation.place import Place
from podium.api.validation.placement import EFFECTS


def check_node(node: Place) -> None:
    """A node: its taints, its addresses for pods, and what it offers, whatever the resources are called."""
    spec, status = node.child_or_empty("spec"), node.child_or_empty("status")
    seen: set[tuple[str, str]] = set()
    for taint in spec.objects("taints"):
        key, effect = taint.text("key"), taint.text("effect")
        taint.check("key", label_key_problem(key))
        taint.check("value", label_value_problem(taint.text("value")))
        taint.require("effect")
        taint.check_one_of("effect", EFFECTS)
        if (key, effect) in seen:
            taint.duplicate("", f"{key}:{effect}")
        seen.add((key, effect))
    check_amounts(status, "capacity", None)
    check_amounts(status, "allocatable", None)
    blocks = spec.texts("podCIDRs")
    for block in blocks:
        block.check("", cidr_problem(block.value))
    families = {":" in block.value for block in blocks}
    if len(blocks) != len(families):
        spec.invalid("podCIDRs", [], "may specify no more than one CIDR for each IP family")


def check_csi_node(node: Place) -> None:
    """The drivers on a node, each once."""
    names: set[str] = set()
    for driver in node.child_or_empty("spec").objects("drivers"):
        driver.require("name", "nodeID")
        name = driver.text("name")
        if name in names:
            driver.duplicate("name", name)
        elif name:
            driver.check("name", subdomain_problem(name.lower()))
        names.add(name)
        driver.child_or_empty("allocatable").check_not_negative("count")
        keys: set[str] = set()
        for key in driver.texts("topologyKeys"):
            key.check("", label_key_problem(key.value))
            if key.value in keys:
                key.duplicate("", key.value)
            keys.add(key.value)
