"""What an answer rests on, for people."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.basis import Caveat
from podium.app.console.page import Page


def write_basis(page: Page, caveats: Sequence[Caveat]) -> None:
    """Write what the answer could not know or does not do; nothing where there is nothing to say."""
    if not caveats:
        return
    page.title("This rests on", "less than a whole cluster")
    for caveat in caveats:
        page.paragraph(caveat.message, indent=2, hanging=2)
