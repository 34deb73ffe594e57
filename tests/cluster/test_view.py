"""Views: some rows of the cluster as arrays, for filters and scores."""

from __future__ import annotations

import numpy as np
import pytest

from podium.cluster import view as view_module
from podium.cluster.view import View
from tests.builders import cluster_of, node, pod


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 9])
def test_pieces_show_all_rows_once_in_their_order(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "PIECE_ROWS", 4)
    cluster = cluster_of(
        *(node(f"n{number}", cpu=number + 1) for number in range(rows)),
        *(pod(f"p{number}", cpu=1, on=f"n{number}") for number in range(0, rows, 2)),
    )
    whole, pieces = View(cluster), list(View.pieces(cluster))
    both = np.array([0, 1])

    assert [len(piece) for piece in pieces[:-1]] == [4] * (len(pieces) - 1)
    assert np.concatenate([piece.rows for piece in pieces]).tolist() == whole.rows.tolist()
    assert np.concatenate([piece.pod_count() for piece in pieces]).tolist() == whole.pod_count().tolist()
    for resource in (0, both):
        found = np.concatenate([piece.requested(resource) for piece in pieces], axis=-1)
        assert found.tolist() == whole.requested(resource).tolist()
