"""Names that users write: which nodes they mean, and suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for a name that is not among the known ones."""
    names = list(known)
    near = likely(name, names)
    return f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(names) or 'none'}"


def nodes_named(name: str, nodes: Collection[str]) -> list[str]:
    """Return the nodes that a name means, in order; [] for none.

    It is a whole name, a pattern for names or names without their domain, such as `ip-10-0-1-*`, or a name without its
    domain that only one node has.
    """
    if name in nodes:
        return [name]
    if set(name) & set("*?["):
        return sorted(node for node in nodes if fnmatchcase(node, name) or fnmatchcase(node.partition(".")[0], name))
    short = [node for node in nodes if node.startswith(f"{name}.")]
    return short if len(short) == 1 else []


def node_hint(name: str, nodes: Collection[str]) -> str:
    """Return the end of an error about an unknown node: the nodes that may be meant; "" for none.

    A machine's name without its domain matches the nodes with that name.
    """
    near = sorted(node for node in nodes if node.startswith(f"{name}.")) or likely(name, sorted(nodes))
    return f"; did you mean {' or '.join(near[:3])}?" if near else ""


def likely(name: str, known: Iterable[str]) -> list[str]:
    """Return the probably intended names: one that differs only in case, else similar ones, best first."""
    names = list(known)
    same = [one for one in names if one.lower() == name.lower()]
    # The comparison takes quadratic time, and no valid name is longer than this.
    return same or get_close_matches(name[:100], names)
