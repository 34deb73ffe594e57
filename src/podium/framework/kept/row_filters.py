"""The filters of a profile for one row at a time, without arrays: what few rows that changed are asked again.

Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.nominations import Nominations
from podium.cluster.pods import PodRecord
from podium.framework.errors import blame
from podium.framework.kept.class_cache import KeptRows
from podium.framework.plugin import OneRowFilterPlugin, Plugin
from podium.framework.verdicts import Decoders, Outcome

FEW_ROWS = 16
"""Up to how many rows are asked one by one; more are asked at once, in arrays."""


def has_one_row_form(plugin: Plugin) -> bool:
    """Whether a plugin can be asked about one row: it has that form, and no subclass changed the other form alone."""
    if not isinstance(plugin, OneRowFilterPlugin):
        return False
    for kind in type(plugin).__mro__:
        if "filter_row" in vars(kind):
            return True
        if "filter_rows" in vars(kind):
            return False
    return True


class RowFilters:
    """What the filters say of single rows to the pods of a class, as entries of an `Outcome`.

    Pods on the row may be taken for ``gone``, and others for ``joined``. What only a node object can change is looked
    up.
    """

    __slots__ = ("_filters", "_nominations", "_of_nodes")

    def __init__(
        self, nominations: Nominations, of_nodes: KeptRows, filters: Sequence[tuple[int, OneRowFilterPlugin]]
    ) -> None:
        """``of_nodes`` are the refusals of scope NODE, ``filters`` those of scope ROW with their places, in order."""
        self._nominations = nominations
        self._of_nodes = of_nodes
        self._filters = filters

    def is_right_at(self, position: int) -> bool:
        """Whether no node has changed up to a position of the log of changes to node objects."""
        return self._of_nodes.position == position

    def refused(
        self, pod: PodRecord, row: int, gone: Sequence[PodRecord] = (), joined: Sequence[PodRecord] = ()
    ) -> int:
        """The first refusal on a row, 0 where there is none; nominated pods are not regarded."""
        by_node: int = self._of_nodes.values.item(row)
        for index, plugin in self._filters:
            if by_node and by_node >> Outcome.SHIFT < index:
                break
            # As `Calling` does it, which would cost as much as most plugins take to answer.
            try:
                code = plugin.filter_row(pod, row, gone, joined)
            except BaseException as error:
                blame(error, plugin.name, "Filter", pod)
                raise
            if code:
                return (index << Outcome.SHIFT) + code
        return by_node

    def beside(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], own_uid: str) -> int:
        """The first refusal on a row beside the pods that are nominated to it; 0 where there are none of these.

        Nominated pods of less priority do not count, and neither does that of ``own_uid``.
        """
        if not self._nominations.uids:
            return 0
        nominated = self._nominations.rivals(row, pod, own_uid)
        return self.refused(pod, row, gone, nominated) if nominated else 0

    def refused_at_last(self, pod: PodRecord, row: int, gone: Sequence[PodRecord], own_uid: str) -> int:
        """The first refusal on a row beside nominated pods, or else without them."""
        return self.beside(pod, row, gone, own_uid) or self.refused(pod, row, gone)

    def explain(self, pod: PodRecord, decoders: Decoders) -> None:
        """Add to ``decoders`` what the entries stand for, where it is lacking."""
        for index, plugin in self._filters:
            if index not in decoders:
                decoders[index] = (plugin.name, plugin.explain(pod))
        for index, decoder in self._of_nodes.decoders.items():
            decoders.setdefault(index, decoder)
