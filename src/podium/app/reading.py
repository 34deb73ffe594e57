"""Reading files in front of somebody."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api import codec
from podium.api.codec import Input
from podium.api.files import FileName
from podium.api.warnings import Validation
from podium.app.progress import ProgressBar


def read_shown(paths: Sequence[FileName], validation: Validation | None) -> Input:
    """What `codec.read_input` reads, with a progress bar where it takes a while."""
    with ProgressBar() as bar:
        return codec.read_input(paths, validation, lambda share: bar.update(share, _told))


def _told() -> str:
    return "reading"
