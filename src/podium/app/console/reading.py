"""Reading files in front of somebody."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.input import codec
from podium.api.input.codec import Input
from podium.api.input.files import FileName
from podium.api.warnings import Validation
from podium.app.console.progress import ProgressBar


def read_shown(paths: Sequence[FileName], validation: Validation | None) -> Input:
    """What `codec.read_input` reads, with a progress bar where it takes a while."""
    with ProgressBar() as bar:
        return codec.read_input(paths, validation, lambda share: bar.update(share, _told))


def _told() -> str:
    return "reading"
