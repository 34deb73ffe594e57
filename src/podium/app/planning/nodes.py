"""Which nodes a question is about: by name, or by label."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import InputError
from podium.api.input.codec import Input
from podium.api.schemas.suggestion import likely
from podium.api.selectors import parse_label_selector
from podium.app.planning.question import objects_of


def chosen_nodes(read: Input, names: Sequence[str], selector: str = "") -> list[str]:
    """The nodes of these names, in their order, then those with the labels, by name; each once.

    A name may be written as kubectl does, `node/NAME`. Raises InputError for a name that no node has, and where nothing
    is chosen.
    """
    nodes = objects_of(read, "Node")
    found: dict[str, None] = {}
    for given in names:
        name = given.partition("/")[2] if given.partition("/")[0] in ("node", "nodes", "no") else given
        if name not in nodes:
            near = likely(name, nodes)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InputError(f"there is no node {name} among {len(nodes):,}{hint}")
        found[name] = None
    if selector:
        try:
            labels = parse_label_selector(selector)
        except ValueError as error:
            raise InputError(f"-l {selector}: {error}") from None
        matching = [
            name
            for name, document in sorted(nodes.items())
            if document.object is not None and labels.matches(document.object.metadata.labels)
        ]
        if not matching:
            raise InputError(f"-l {selector}: no node of {len(nodes):,} has these labels")
        found |= dict.fromkeys(matching)
    if not found:
        raise InputError("no node is named; give names, or labels with -l")
    return list(found)


def named(nodes: Sequence[str], most: int = 3, labels: str = "") -> str:
    """The nodes in a line; of many only how many they are, and by which labels they were chosen, "" for none."""
    if len(nodes) <= most:
        return ", ".join(nodes)
    return f"{len(nodes):,} nodes" + (f" with {labels}" if labels else "")
