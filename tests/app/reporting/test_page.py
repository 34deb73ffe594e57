"""The page of a picture in a real browser: drawing, tooltips, search and keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podium.app.console.command import podium
from podium.app.library import load, plan, simulate
from podium.app.reporting import report
from podium.app.reporting.picture import AnswerPicture, Table, html_file
from podium.app.reporting.run_timeline import timeline_of
from tests.app.planning.dumps import dump
from tests.app.planning.small import node, pod, written
from tests.app.reporting.browser import Opened, open_browser
from tests.docs.blocks import ROOT

STARVATION = ROOT / "examples" / "starvation-1.yaml"
HOSTILE = '</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the story of a preemption: c preempts a and b on node-1, and d waits."""
    path = tmp_path_factory.mktemp("page") / "story.html"
    path.write_text(report(simulate([STARVATION], latency=0)))
    return path


@pytest.fixture
def story(browser: Any, file: Path) -> Iterator[Opened]:
    opened = Opened(browser, file)
    yield opened
    assert opened.complaints == []
    assert opened.requests == [file.as_uri()]
    opened.context.close()


def hover(opened: Opened, pod: str, **how: Any) -> str:
    opened.page.mouse.move(*opened.place_of(pod, **how))
    opened.frame()
    return opened.tip()


def selection(opened: Opened) -> Any:
    return opened.ask("podium.stories.scene.selection")


def lit(opened: Opened) -> list[str]:
    """Return the pods that have not faded."""
    names = opened.ask(
        """(() => {
            const [view] = podium.stories.views, { lit, story } = view;
            return [...Array(story.podCount).keys()].filter((pod) => !lit || lit[pod]).map((pod) => story.podName(pod));
        })()"""
    )
    return list(names)


def test_a_page_shows_its_headline_and_one_view_without_network_requests(story: Opened) -> None:
    # The fixture checks the requests.
    assert story.page.inner_text("h1") == "2m: 1 bound, 2 preempted, 1 pod waiting at the end"
    assert story.ask("podium.stories.views.length") == 1


def test_hovering_over_a_victim_shows_its_preemptor(story: Opened) -> None:
    answer = hover(story, "default/a")

    assert answer.startswith("default/a")
    assert "is being deleted: +0s Killing: by default/c: grace period 60s" in answer
    assert "its grace period lasts until +1m" in answer


def test_the_name_of_a_waiting_pod_does_not_touch_its_frame(story: Opened) -> None:
    room, tall = story.ask(
        """(() => {
            const view = podium.stories.views[0], [pod] = view.story.find({ kind: "pod", name: "default/d" }).pods;
            const context = document.createElement("canvas").getContext("2d");
            context.font = "10.5px system-ui, sans-serif";
            const { actualBoundingBoxAscent, actualBoundingBoxDescent } = context.measureText("bdfghjklpqyg");
            return [view.placeOf(pod, true).height - 2, actualBoundingBoxAscent + actualBoundingBoxDescent];
        })()"""
    )

    assert tall < room


def test_hovering_over_a_waiting_pod_shows_the_reason_in_explains_words(story: Opened) -> None:
    answer = hover(story, "default/d", waits=True)

    assert "waits for a node since +0s" in answer
    assert "1 Insufficient cpu. preemption: 1 No preemption victims found for incoming pod" in answer


def test_hovering_over_a_placed_pod_shows_the_reason_of_its_placement(browser: Any, tmp_path: Path) -> None:
    path, objects = tmp_path / "why.html", tmp_path / "objects.json"
    waiting = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*dump(5, 10), waiting]}))
    path.write_text(CliRunner().invoke(podium, ["simulate", "-f", str(objects), "-o", "html"]).output)
    opened = Opened(browser, path)

    answer = hover(opened, "default/web")

    assert "fitted 5 of 5 nodes" in answer
    assert re.search(r"scored \d+, (as good as|better than) the next, \S+ with \d+", answer)
    assert re.search(r"NodeResourcesFit \d+ \W 1 = \d+", answer)
    assert opened.complaints == []
    opened.context.close()


def test_a_click_on_a_pod_fades_all_but_those_it_has_to_do_with(story: Opened) -> None:
    story.page.mouse.click(*story.place_of("default/c"))
    story.frame()

    assert selection(story) == {"kind": "pod", "name": "default/c"}
    assert lit(story) == ["default/a", "default/b", "default/c"]
    assert "preempted default/a, default/b" in story.page.inner_text(".details")

    story.page.keyboard.press("Escape")
    story.frame()
    assert selection(story) is None
    assert lit(story) == ["default/a", "default/b", "default/c", "default/d"]


def test_a_click_on_a_node_selects_its_pods(story: Opened) -> None:
    box = story.page.locator(".view").bounding_box()
    row = story.ask("podium.stories.views[0].above + podium.stories.views[0].rowHeight / 2")

    story.page.mouse.click(box["x"] + 30, box["y"] + row)
    story.frame()

    assert selection(story) == {"kind": "node", "name": "node-1"}
    assert lit(story) == ["default/a", "default/b", "default/c"]
    assert "cpu 100% requested: 10 of 10" in story.page.inner_text(".details")


def test_time_is_scrubbed_along_the_axis_and_by_the_slider(story: Opened) -> None:
    box = story.page.locator(".view").bounding_box()
    middle = story.ask("podium.stories.views[0].axis.ofShare(0.25)")
    story.page.mouse.move(box["x"] + middle, box["y"] + 8)
    story.page.mouse.down()
    story.page.mouse.up()
    story.frame()

    assert story.page.inner_text(".clock").startswith("+30s ")

    story.page.locator("input.time").fill("0.5")
    story.frame()
    assert story.page.inner_text(".clock") == "+1m 1 pod on nodes, 1 waiting"


def test_keys_go_from_event_to_event(story: Opened) -> None:
    story.press("Home")
    assert story.page.inner_text(".clock") == "+0s 2 pods on nodes, 2 waiting"

    story.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert story.page.inner_text(".clock") == "+0s 2 pods on nodes, 2 waiting, 1 being deleted"
    assert story.page.inner_text(".row.now .reason") == "Killing"

    story.press("End", "ArrowDown", "Enter")
    assert selection(story) == {"kind": "node", "name": "node-1"}


def test_time_runs_from_the_beginning_and_is_stopped(story: Opened) -> None:
    story.press("p")
    story.ask("new Promise((done) => podium.stories.scene.on((changed) => changed.has('time') && done()))")

    story.press("p")

    assert 0 < story.ask("podium.stories.scene.time") < 120
    assert story.page.get_by_role("button", name="▶ Play").count() == 1
    stopped = story.ask("podium.stories.scene.time")
    story.frame()
    assert story.ask("podium.stories.scene.time") == stopped


def test_the_axis_goes_by_order_of_events_too(story: Opened) -> None:
    story.press("t", "Home", "ArrowRight")

    assert story.ask("podium.stories.scene.axis") == "order"
    assert story.page.inner_text(".clock").startswith("+0s, event 1 of 14")


def test_search_finds_by_parts_of_a_name(story: Opened) -> None:
    story.press("/")
    story.page.keyboard.type("fault c")
    assert story.page.locator(".found button").all_inner_texts() == ["pod default/c"]

    story.page.keyboard.press("Enter")
    story.frame()
    assert selection(story) == {"kind": "pod", "name": "default/c"}


def test_zoom_shows_a_part_of_the_time_and_all_of_it_again(story: Opened) -> None:
    story.press("Home", "i", "i")
    assert story.ask("podium.stories.scene.window") == {"from": 0, "to": 0.25}

    story.press("]")
    assert story.ask("podium.stories.scene.window") == {"from": 0.125, "to": 0.375}

    story.press("0")
    assert story.ask("podium.stories.scene.window") == {"from": 0, "to": 1}


def test_a_partial_time_range_follows_the_playback(story: Opened) -> None:
    story.press("Home", "i", "i", "End")

    window = story.ask("podium.stories.scene.window")
    assert window["from"] < story.ask("podium.stories.scene.cursorShare(0)") <= window["to"]


def test_everything_that_can_be_operated_has_a_name(story: Opened) -> None:
    nameless = story.ask(
        """[...document.querySelectorAll("button, input, select, [tabindex]")].filter((each) =>
            !(each.getAttribute("aria-label") || each.title || each.textContent.trim()))
                .map((each) => each.outerHTML)"""
    )

    assert nameless == []


def test_runs_side_by_side_share_time_selection_and_rows(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    plans = plan(ROOT / "examples" / "plan" / "cluster.yaml", until="5m")
    path.write_text(report(plans.drain("ip-10-0-1-12.eu-west-1.compute.internal")))

    opened = Opened(browser, path)
    assert opened.page.locator("figcaption").all_inner_texts() == ["without the plan", "with the plan"]
    opened.page.locator("tr.subject", has_text="Deployment shop/report").click()
    opened.frame()

    assert selection(opened) == {"kind": "workload", "name": "Deployment shop/report"}
    counts = "podium.stories.views.map((view) => view.lit.reduce((sum, each) => sum + each, 0))"
    assert opened.ask(counts) == [3, 4]
    assert opened.ask("podium.stories.views.map((view) => view.above)") == [44, 44]
    opened.press("Home")
    assert opened.page.inner_text(".clock").startswith("+0s ")
    assert opened.ask("podium.stories.scene.time") == 0
    assert opened.complaints == []
    opened.context.close()


def test_a_shade_means_the_same_priority_in_runs_side_by_side(browser: Any, tmp_path: Path) -> None:
    cluster = written(tmp_path, node("n1"), pod("low", on="n1", priority=10), pod("middle", on="n1", priority=20))
    path = tmp_path / "plan.html"
    path.write_text(report(load([cluster]).plan().deploy({**pod("new", priority=5), "status": {}})))

    opened = Opened(browser, path)

    shades = """podium.stories.views.map(({ story }) => {
        const [low] = story.find({ kind: "pod", name: "default/low" }).pods;
        return [story.classes, story.classOf[low]];
    })"""
    assert opened.ask(shades) == [[[[5, 5], [10, 10], [20, 20]], 1]] * 2
    opened.context.close()


def test_a_pod_that_waited_before_the_start_says_for_how_long(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    old = {**pod("old", "100"), "metadata": {"name": "old", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    objects = written(tmp_path, node("n1"), pod("new", on="n1"), old)
    path.write_text(report(simulate([objects], start="2026-01-12T11:22:53.159Z", until="1m")))

    opened = Opened(browser, path)

    assert "waits for a node since 275h22m53s before the start" in hover(opened, "default/old", waits=True)
    opened.context.close()


def test_a_sweep_page_keeps_the_selection_of_two_runs(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "sweep.html"
    example = str(ROOT / "examples" / "preemption-loop.yaml")
    varied = ["--vary", "maxFutilePreemptions=0,1,2", "--jobs", "1", "-o", "html", "--save", str(path)]
    assert CliRunner().invoke(podium, ["sweep", "-f", example, *varied]).exit_code == 0

    opened = Opened(browser, path)
    assert "maxFutilePreemptions=0: preempted 60" in opened.page.get_attribute(".chart canvas", "aria-label")
    opened.ask("podium.stories.select('pod', 'default/urgent')")
    opened.page.get_by_label("right").select_option("2")
    opened.frame()

    assert opened.page.locator("figcaption").all_inner_texts() == ["maxFutilePreemptions=0", "maxFutilePreemptions=2"]
    assert selection(opened) == {"kind": "pod", "name": "default/urgent"}
    assert opened.page.locator(".tip").count() == 1
    assert opened.complaints == []
    opened.context.close()


def test_a_row_of_the_events_leads_to_its_moment_and_pod(story: Opened) -> None:
    story.page.locator(".row", has_text="Terminated").first.click()
    story.frame()

    assert story.page.inner_text(".clock").startswith("+30s ")
    assert selection(story) == {"kind": "pod", "name": "default/b"}


def test_a_page_follows_the_system_theme_until_the_user_changes_it(browser: Any, file: Path) -> None:
    opened = Opened(browser, file, color_scheme="dark")
    theme = "document.documentElement.dataset.theme"

    assert opened.ask(theme) == opened.ask("podium.stories.scene.theme") == "dark"
    opened.press("d")
    assert opened.ask(theme) == opened.ask("podium.stories.scene.theme") == "light"
    assert opened.complaints == []
    opened.context.close()


def test_a_page_is_printed_light_and_has_its_picture(browser: Any, file: Path) -> None:
    opened = Opened(browser, file, color_scheme="dark")

    opened.ask("window.dispatchEvent(new Event('beforeprint'))")

    assert opened.ask("document.documentElement.dataset.theme") == "light"
    pixel = "[...podium.stories.views[0].base.getContext('2d').getImageData(2, 2, 1, 1).data]"
    assert opened.ask(pixel) == [255, 255, 255, 255]
    opened.ask("window.dispatchEvent(new Event('afterprint'))")
    assert opened.ask("document.documentElement.dataset.theme") == "dark"
    opened.context.close()


def test_hostile_names_are_text(browser: Any, tmp_path: Path) -> None:
    result = simulate([STARVATION], latency=0)
    for entry in result.pods:
        entry["workload"] = HOSTILE
    table = Table(HOSTILE, [HOSTILE], [[HOSTILE]], note=HOSTILE, subjects=[f"workload {HOSTILE}"])
    path = tmp_path / "hostile.html"
    picture = AnswerPicture(
        command="simulate", headline=HOSTILE, facts=[HOSTILE], tables=[table], stories=[timeline_of(result, HOSTILE)]
    )
    path.write_text(html_file(HOSTILE, picture))

    opened = Opened(browser, path)
    opened.page.locator("tr.subject").click()
    opened.frame()

    assert opened.page.inner_text("h1") == HOSTILE
    assert opened.page.title() == HOSTILE
    assert HOSTILE in opened.page.inner_text(".details")
    assert HOSTILE in hover(opened, "default/c")
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]
    opened.context.close()


def test_many_nodes_are_drawn_as_far_as_they_are_in_sight(browser: Any, tmp_path: Path) -> None:
    nodes, pods = 400, 1_200
    path = tmp_path / "many.html"
    path.write_text(report(simulate(dump(nodes, pods), until="10s")))

    opened = Opened(browser, path)

    assert 'data-form="gzip"' in path.read_text()
    assert opened.ask("podium.stories.scene.rows.length") == nodes
    assert opened.ask("[...podium.stories.views[0].inSight()].length") < 60
    opened.page.locator(".search input").fill("10-0-1-149.")
    opened.page.keyboard.press("Enter")
    opened.frame()
    assert opened.ask("[...podium.stories.views[0].inSight()].some(({ row }) => row.name.startsWith('ip-10-0-1-149.'))")
    opened.press(*"-" * 12)
    assert opened.ask("[...podium.stories.views[0].inSight()].length") > 100
    assert opened.complaints == []
    opened.context.close()


def test_a_decision_shows_nodes_by_verdict_and_candidates_with_victims(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "decision.html"
    path.write_text(report(load([STARVATION]).explain("default/c")))

    opened = Opened(browser, path)

    assert opened.page.inner_text("h1") == "default/c preempts on node-1: victims default/a, default/b"
    assert "✕ 1 node Insufficient cpu (NodeResourcesFit)" in opened.page.inner_text(".mosaic")
    assert "default/a, default/b" in opened.page.inner_text(".decision table")
    assert "preempting there takes 2: default/a, default/b" in opened.page.inner_text(".details")
    opened.page.keyboard.press("Escape")
    assert "Point at a node" in opened.page.inner_text(".details")
    opened.page.locator(".mosaic canvas").hover(position={"x": 8, "y": 8})
    assert opened.page.inner_text(".details").startswith("node-1")
    assert opened.complaints == []
    opened.context.close()


def test_candidates_have_a_column_for_each_criterion_that_is_stated(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "decision.html"
    example = ROOT / "examples" / "preemption" / "work-lost.yaml"
    path.write_text(report(load([example], example.with_name("work-lost-config.yaml")).explain("ml/urgent")))

    opened = Opened(browser, path)

    headings = opened.page.locator(".decision thead tr > *").all_inner_texts()
    assert headings == ["", "node", "work lost", "grace", ""]
    rows = opened.page.inner_text(".decision tbody").splitlines()
    assert [row.split("\t")[1:4] for row in rows] == [
        ["gpu-2", "1.0 node-hours", "30s"],
        ["gpu-1", "8.0 node-hours", "30s"],
    ]
    assert "work lost 1.0 node-hours, grace 30s" in opened.page.inner_text(".details")
    assert opened.complaints == []
    opened.context.close()


def test_scores_are_bars_and_a_table_of_the_node_that_is_chosen(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "scores.html"
    objects = [*dump(30, 60)]
    objects += [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    ]
    path.write_text(report(load(objects).explain("default/web")))

    opened = Opened(browser, path)

    assert "✓ 30 nodes fits" in opened.page.inner_text(".mosaic")
    assert "the node that it goes to" in opened.page.inner_text(".details")
    assert "NodeResourcesFit" in opened.page.inner_text(".details table")
    opened.page.locator(".scores").hover(position={"x": 40, "y": 50})
    assert "of 30 by total" in opened.page.inner_text(".details")
    assert opened.complaints == []
    opened.context.close()
