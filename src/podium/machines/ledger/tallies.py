"""How many disruptions there were, by cause: what metrics tell."""

from __future__ import annotations

from collections import Counter, OrderedDict

from podium.machines.ledger.disruption import Disruption

# Of so many it is remembered that they were in vain, so that they count once however often they change after that.
_MOST = 10_000


class Tallies:
    """Counts records as they come and change; by cause, since it began."""

    def __init__(self, last_id: int = 0) -> None:
        """``last_id`` is the number of the last record that does not count."""
        self.last_id = last_id
        """The number of the last record."""
        self._known_in_vain: OrderedDict[int, None] = OrderedDict()
        self.disruptions: Counter[str] = Counter()
        self.in_vain: Counter[str] = Counter()
        self.lost_seconds: dict[str, float] = {}
        """Running time that was lost, in seconds."""

    def known(self, record: Disruption) -> None:
        """A record of an earlier life is gone on with: what was in vain by then does not count."""
        if record.in_vain:
            self._remember(record.id)

    def put(self, record: Disruption) -> None:
        """A record has come, or has changed."""
        if record.id > self.last_id:
            self.last_id = record.id
            self.disruptions[record.cause] += 1
            self.lost_seconds[record.cause] = self.lost_seconds.get(record.cause, 0) + record.loss.lost
        if record.in_vain and record.id not in self._known_in_vain:
            self._remember(record.id)
            self.in_vain[record.cause] += 1

    def _remember(self, number: int) -> None:
        self._known_in_vain[number] = None
        if len(self._known_in_vain) > _MOST:
            self._known_in_vain.popitem(last=False)
