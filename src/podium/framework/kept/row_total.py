"""What filters and scores that are asked about single rows say of one together."""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.framework.plugin import NO_FIT, FitsRow, ScoreRow, TotalOfRow


def total_of_row(
    filters: Sequence[FitsRow], scores: Sequence[tuple[ScoreRow, int]], joined: TotalOfRow | None = None
) -> TotalOfRow:
    """The sum of the weighted scores of a row that all filters let in; ``joined`` answers for some of them at once."""

    def total(pod: PodRecord, row: int) -> int:
        found = 0 if joined is None else joined(pod, row)
        if found < 0:
            return NO_FIT
        for fits in filters:
            if not fits(pod, row):
                return NO_FIT
        for score, weight in scores:
            found += weight * score(pod, row)
        return found

    return total if joined is None or filters or scores else joined
