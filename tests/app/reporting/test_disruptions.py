"""The picture of disruptions over time: its contents, and its drawing in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.app.accounting.account import Account, LedgerQuery, answer_of
from podium.app.reporting import report
from podium.app.reporting.picture import Disruptions
from podium.app.reporting.pictures import MOST_DRAWN, disruptions_of
from podium.controllers.ledger.disruption import Beneficiary, Cause, Disruption, Loss, Outcome, ReplacementPod
from tests.app.reporting.browser import Opened, open_browser

HOSTILE = '</script><img src=x onerror="document.title=1">'


def record(number: int, owner: str, *, whom: str = "", cause: Cause = "preemption", **rest: Any) -> Disruption:
    """Return a disruption in the minute of its number; its pod is gone 10 s later, and another ready after 30 s."""
    outcome: Outcome = rest.pop("outcome", "placed")
    room = Beneficiary(pod=f"shop/{whom}-0", uid=f"uid-{whom}", owner=whom, priority=len(whom), outcome=outcome)
    return Disruption(
        id=number,
        time=60 * number,
        pod=f"shop/{owner}-0",
        uid=f"uid-{owner}",
        node="n",
        cause=cause,
        owner=owner,
        beneficiary=room if whom else None,
        loss=Loss(ended_after=10),
        replacement=ReplacementPod(
            pod=f"shop/{owner}-1", uid=f"uid-{owner}-1", node="m", placed_after=10, ready_after=30
        ),
        **rest,
    )


# The most important takes the room of web, web that of batch; batch goes once more, in vain; and one is drained.
STORY = (
    record(1, "web", whom="important"),
    record(2, "batch", whom="web"),
    record(3, "batch", whom="important", outcome="again"),
    record(4, "other", cause="drain"),
)


def drawn(*records: Disruption, is_dated: bool = False) -> Disruptions:
    """Return what is drawn of an account."""
    found = disruptions_of(answer_of(Account("", records, 600, is_dated), LedgerQuery()))
    assert found is not None
    return found


def test_beneficiaries_come_first_then_the_hardest_hit_workloads() -> None:
    found = drawn(*STORY)

    assert found.rows == ["important", "web", "batch", "other"]
    assert found.row == [1, 2, 2, 3]
    assert found.beneficiary == [0, 1, 0, -1]


def test_disruptions_are_drawn_with_start_end_recovery_and_outcome() -> None:
    found = drawn(*STORY)

    assert (found.start, found.span, found.at) == (0, 600, [60, 120, 180, 240])
    assert (found.gone[0], found.ready[0]) == (70, 90)
    assert [found.causes[cause] for cause in found.cause] == ["preemption"] * 3 + ["drain"]
    assert found.vain == [False, False, True, False]
    assert found.following == [1, -1, -1, -1]
    assert found.lines[2][-1] == "in vain: shop/important-0 needed further victims"


def test_dates_begin_at_a_whole_minute_or_hour() -> None:
    assert drawn(*STORY[1:], is_dated=True).start == 120
    assert drawn(record(1_000, "a"), record(2_000, "b"), is_dated=True).start == 57_600


def test_the_last_of_many_disruptions_are_drawn_with_a_count() -> None:
    found = drawn(*(record(number, "web") for number in range(1, MOST_DRAWN + 11)))

    assert (len(found.at), found.note) == (MOST_DRAWN, f"the last {MOST_DRAWN:,} of {MOST_DRAWN + 10:,}")


def test_without_disruptions_there_is_no_picture() -> None:
    assert disruptions_of(answer_of(Account("", (), 600), LedgerQuery())) is None


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


def opened(browser: Any, folder: Path, *records: Disruption, **options: Any) -> Opened:
    """Return the page of an account."""
    file = folder / "ledger.html"
    file.write_text(report(answer_of(Account("", records, 600), LedgerQuery())))
    return Opened(browser, file, **options)


def mark(page: Opened, place: int) -> tuple[float, float]:
    """Return where a disruption's mark is on the screen."""
    x, y = page.ask(
        f"""(() => {{
            const {{ x, y }} = podium.disruptions.drawing.placeOf({place});
            const box = podium.disruptions.canvas.getBoundingClientRect();
            return [box.left + x, box.top + y];
        }})()"""
    )
    return x, y


def test_hovering_shows_details_and_a_click_leaves_the_chain(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, *STORY)

    page.page.mouse.move(*mark(page, 2))
    assert "in vain: shop/important-0 needed further victims" in page.tip()
    page.page.mouse.click(*mark(page, 1))

    assert sorted(page.ask("[...podium.disruptions.lit()]")) == [0, 1]
    assert "preemption for shop/web-0" in page.page.inner_text(".described")
    assert "in a chain with 1 other" in page.page.inner_text(".described")
    page.page.mouse.click(*mark(page, 1))
    assert page.ask("podium.disruptions.lit()") is None
    assert page.complaints == []
    page.context.close()


def test_keys_go_from_one_to_the_next_and_show_a_part_of_the_time(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, *STORY)

    page.page.focus(".disruptions canvas")
    for key in ("ArrowRight", "ArrowRight", "+", "+"):
        page.page.keyboard.press(key)
    assert page.ask("podium.disruptions.chosen") == 1
    assert page.ask("podium.disruptions.window.to - podium.disruptions.window.from") == pytest.approx(0.25)
    left, _ = mark(page, 1)
    assert 0 < left < 1_200
    for key in ("0", "Escape"):
        page.page.keyboard.press(key)

    assert page.ask("[podium.disruptions.chosen, podium.disruptions.window.to]") == [-1, 1]
    page.context.close()


def test_disruptions_are_drawn_for_both_themes_and_described_in_text(browser: Any, tmp_path: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = opened(browser, tmp_path, *STORY, color_scheme=scheme)
        colours.append(
            page.ask(
                "(() => { const { canvas } = podium.disruptions;"
                "return [...canvas.getContext('2d').getImageData(2, 30, 1, 1).data].slice(0, 3); })()"
            )
        )
        label = page.page.get_attribute(".disruptions canvas", "aria-label")
        assert label.startswith("4 disruptions by time: 1 drain, 3 preemption; 1 in vain")
        assert "K" not in page.page.inner_text(".legend").split()
        assert page.complaints == []
        page.context.close()

    assert colours[0] != colours[1]


def test_hostile_names_are_text(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, record(1, HOSTILE, whom="web", rule=HOSTILE))

    page.page.mouse.click(*mark(page, 0))

    assert HOSTILE in page.page.inner_text(".described")
    assert page.ask("document.images.length") == 0
    assert page.complaints == []
    page.context.close()


def test_two_thousand_are_drawn_in_their_rows(browser: Any, tmp_path: Path) -> None:
    records = [record(number, f"web-{number % 60}", whom="important") for number in range(1, MOST_DRAWN + 1)]
    page = opened(browser, tmp_path, *records)

    assert page.ask("podium.disruptions.layout.rows.length") == 61
    assert page.ask("podium.disruptions.layout.height") < 61 * 200
    assert page.complaints == []
    page.context.close()
