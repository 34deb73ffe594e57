"""How strategic merge patch treats the lists of each kind: which are merged, and by which key.

That stands in the schemas of the kinds (`podium.api.schemas.schema`), as the patchStrategy and patchMergeKey tags of
k8s.io/api have it. A list without a mark there is replaced as a whole: tolerations, taints, and the terms of
affinities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from podium.api.schemas.schema import ListOf, Object, fields_of, is_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The fields of an object that are more than plain.

    `lists` are merged, each by the field of its items that is named; "" is a list of plain values, merged as a set.
    `replaced` are objects that are replaced as a whole. `fields` are the schemas of objects, and of items of lists.
    """

    lists: Mapping[str, str] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    fields: Mapping[str, Schema] = field(default_factory=dict)

    def of(self, name: str) -> Schema:
        """The schema of a field, or of its items."""
        return self.fields.get(name, _PLAIN)


_PLAIN = Schema()


def schema_of(kind: str) -> Schema:
    """The schema of a built-in kind; of one whose fields are not known, that of the metadata alone."""
    return _of_type(kind) if is_type(kind) else Schema(fields={"metadata": _of_type("ObjectMeta")})


@cache
def _of_type(name: str) -> Schema:
    fields = fields_of(name)
    inner = {key: one.type.item if isinstance(one.type, ListOf) else one.type for key, one in fields.items()}
    return Schema(
        lists={key: one.merge_key for key, one in fields.items() if one.merge_key is not None},
        replaced=frozenset(key for key, one in fields.items() if one.is_replaced),
        fields={key: _of_type(one.name) for key, one in inner.items() if isinstance(one, Object)},
    )
