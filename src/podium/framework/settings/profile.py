"""A scheduling profile: which plugins take part at which extension point, in which order, with which weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from podium.framework import plugin as points

# Each extension point as the configuration names it, with the protocols that a plugin may follow there.
EXTENSION_POINTS: dict[str, tuple[type, ...]] = {
    "preEnqueue": (points.PreEnqueuePlugin,),
    "queueSort": (points.QueueSortPlugin,),
    "preFilter": (points.PreFilterPlugin,),
    "filter": (points.ArrayFilterPlugin, points.FilterPlugin),
    "postFilter": (points.PostFilterPlugin,),
    "preScore": (points.PreScorePlugin,),
    "score": (points.ArrayScorePlugin, points.ScorePlugin),
    "reserve": (points.ReservePlugin,),
    "permit": (points.PermitPlugin,),
    "preBind": (points.PreBindPlugin,),
    "bind": (points.BindPlugin,),
    "postBind": (points.PostBindPlugin,),
}


def takes_part(plugin: points.Plugin, point: str) -> bool:
    """Whether a plugin has the methods of an extension point."""
    return any(all(hasattr(plugin, name) for name in _members_of(protocol)) for protocol in EXTENSION_POINTS[point])


@cache
def _members_of(protocol: type) -> tuple[str, ...]:
    """What a protocol asks for: isinstance finds that out anew each time."""
    names = {name for class_ in protocol.__mro__ for name in (*vars(class_), *getattr(class_, "__annotations__", ()))}
    return tuple(sorted(name for name in names if not name.startswith("_")))


@dataclass(frozen=True, slots=True)
class Profile:
    """The plugins of one scheduler name, made and in order. ``weights`` maps score plugins to their weight.

    ``percentage_of_nodes_to_score`` None looks at every node (see `decide.placement`).
    """

    scheduler_name: str
    pre_enqueue: Sequence[points.PreEnqueuePlugin] = ()
    queue_sort: points.QueueSortPlugin | None = None
    pre_filter: Sequence[points.PreFilterPlugin] = ()
    filter: Sequence[points.ArrayFilterPlugin | points.FilterPlugin] = ()
    post_filter: Sequence[points.PostFilterPlugin] = ()
    pre_score: Sequence[points.PreScorePlugin] = ()
    score: Sequence[points.ArrayScorePlugin | points.ScorePlugin] = ()
    reserve: Sequence[points.ReservePlugin] = ()
    permit: Sequence[points.PermitPlugin] = ()
    pre_bind: Sequence[points.PreBindPlugin] = ()
    bind: Sequence[points.BindPlugin] = ()
    post_bind: Sequence[points.PostBindPlugin] = ()
    weights: dict[str, int] = field(default_factory=dict)
    percentage_of_nodes_to_score: int | None = None

    def plugins(self) -> list[points.Plugin]:
        """Every plugin once, in order of its first extension point."""
        listed: list[Any] = [] if self.queue_sort is None else [self.queue_sort]
        for some in (
            self.pre_enqueue,
            self.pre_filter,
            self.filter,
            self.post_filter,
            self.pre_score,
            self.score,
            self.reserve,
            self.permit,
            self.pre_bind,
            self.bind,
            self.post_bind,
        ):
            listed.extend(some)
        return list({plugin.name: plugin for plugin in listed}.values())
