"""What is checked of proposals to make room that come from somebody else's plugins, before they are carried out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from podium.api.errors import shown
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.framework.errors import PluginError
from podium.framework.plugin import Plugin

Proposal = TypeVar("Proposal")


def told_by(plugin: Plugin, pod: PodRecord) -> str:
    """Who answered, and about which pod, as an error begins."""
    return f"plugin {plugin.name} answered at PostFilter for pod {pod.key}"


def checked_form(found: object, form: type[Proposal], told: str) -> Proposal:
    """The proposal, if it is one; ``told`` is as `told_by` has it. Raises PluginError."""
    if not isinstance(found, form):
        raise PluginError(f"{told} with {found!r}, not with a {form.__name__}")
    return found


def checked_victims(
    victims: Iterable[PodRecord], nodes: Iterable[str | None], cluster: Cluster, told: str
) -> tuple[PodRecord, ...]:
    """The victims as they are now. Raises PluginError for one that is on no node, and for a node that there is not.

    A node that is None, or "", is none.
    """
    for node in nodes:
        if node and node not in cluster.nodes.row_of:
            raise PluginError(f"{told} with the node {shown(node)}, which there is not")
    found = []
    for victim in victims:
        if victim.uid not in cluster.placed:
            raise PluginError(f"{told} with the victim {victim.key}, which is on no node")
        found.append(cluster.placed[victim.uid])
    return tuple(found)
