"""The page's JavaScript modules in a real browser: input, state and cleanup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.reporting.browser import open_browser
from tests.app.serving.lives import up

# The page's form of a watch event, with the given fields.
POD = """(name, more = {}) => ({
  key: `uid-${name}`, version: "1", name: `default/${name}`, workload: "Deployment default/web", priority: 1,
  requests: {cpu: 500}, created: 0, phase: "Pending", node: "", isDeleted: false, nominated: "", waits: "",
  disruption: "", why: "",
  ...more,
})"""
MODULES = 'const { History, columnsOf } = await import("/ui/history.js");'
HOSTILE = [
    "",
    "a: b",
    "- a: 'it''s' # c",
    'a: "x\\"y": z',
    "'''",
    '"',
    "{a: [b, {c: d}]}",
    "#x",
    "--- # y",
    "\t- \t:",
    "a: |-2",
    "? x",
    "é: \U0001f4a5 # ü",
    "</script><img src=x onerror=alert(1)>: </pre>",
    "- - - -",
    "x" * 5_000,
    "\u202eabc: 'd",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Provide a page of a control plane without nodes."""
    with open_browser() as browser, up(tmp_path_factory.mktemp("up"), "--port", "0") as life:
        opened = browser.new_page()
        opened.goto(f"{life.server}/ui/")
        opened.wait_for_selector("html[data-drawn]", state="attached")
        yield opened


@pytest.mark.parametrize("line", HOSTILE)
def test_colours_change_no_letter_of_a_line(page: Any, line: str) -> None:
    script = "async (line) => (await import('/ui/editor.js')).piecesOf(line).map(([, piece]) => piece).join('')"
    assert page.evaluate(script, line) == line


def test_managed_fields_are_left_out_of_a_text_and_nothing_else_is(page: Any) -> None:
    text = "metadata:\n  managedFields:\n  - apiVersion: v1\n    fieldsV1:\n      f:a: {}\n  name: a\nspec:\n  - b\n"
    script = "async (text) => (await import('/ui/editor.js')).withoutManagedFields(text)"
    assert page.evaluate(script, text) == "metadata:\n  name: a\nspec:\n  - b\n"


def test_the_life_of_a_pod_becomes_events_in_their_order(page: Any) -> None:
    report = page.evaluate(
        f"""async () => {{
          {MODULES}
          const pod = {POD}, history = new History(1000);
          const tell = (after, before, time) => history.takePods([{{ record: after, before }}], time, false);
          const steps = [
            pod("a"), pod("a", {{ waits: "no room" }}), pod("a", {{ waits: "no room", nominated: "n1" }}),
            pod("a", {{ node: "n1" }}), pod("a", {{ node: "n1", phase: "Running" }}),
            pod("a", {{ node: "n1", phase: "Running", disruption: "EvictionByEvictionAPI", why: "drained" }}),
            pod("a", {{ node: "n1", phase: "Running", isDeleted: true, disruption: "EvictionByEvictionAPI" }}), null,
          ];
          steps.forEach((step, place) => tell(step, steps[place - 1] || null, 1000 + place * 1000));
          const {{ words, events, pods }} = columnsOf(history, 10000);
          return [events.reason.map((word) => words[word]), events.time, pods.created, pods.scheduled, pods.ended];
        }}"""
    )
    reasons = ["Created", "FailedScheduling", "Nominated", "Scheduled", "Started", "Evicted", "Killing", "Terminated"]
    assert report == [reasons, [0, 1, 2, 3, 4, 5, 6, 7], [0], [3], [7]]


def test_the_page_infers_the_preemptor_from_the_nomination(page: Any) -> None:
    report = page.evaluate(
        f"""async () => {{
          {MODULES}
          const pod = {POD}, history = new History(0);
          const low = pod("low", {{ node: "n1", phase: "Running" }}), high = pod("high");
          history.takePods([{{ record: low, before: null }}, {{ record: high, before: null }}], 0, true);
          const gone = {{ ...low, disruption: "PreemptionByScheduler" }};
          history.takePods([{{ record: gone, before: low }}], 1, false);
          history.takePods([{{ record: {{ ...high, nominated: "n1" }}, before: high }}], 2, false);
          const {{ words, events, pods }} = columnsOf(history, 10), name = (pod) => words[pods.name[pod]];
          const place = events.reason.findIndex((word) => words[word] === "Preempted");
          return [name(events.pod[place]), name(events.byPod[place])];
        }}"""
    )
    assert report == ["default/low", "default/high"]


def test_old_page_events_are_dropped(page: Any) -> None:
    kept = page.evaluate(
        f"""async () => {{
          {MODULES}
          const pod = {POD}, history = new History(0);
          let time = 0;
          for (let number = 0; number < 30000; number += 1) {{
            time += 1;
            const made = pod(`pod-${{number}}`);
            history.takePods([{{ record: made, before: null }}], time, false);
            history.takePods([{{ record: null, before: made }}], time, false);
            if (number % 1000 === 0) history.forget(time);
          }}
          history.forget(time);
          const most = [history.events.length, history.pods.size];
          history.forget(time + 31 * 60 * 1000);
          const data = columnsOf(history, time + 31 * 60 * 1000);
          return [...most, history.events.length, history.pods.size, data.events.time.length];
        }}"""
    )
    assert kept[0] <= 20_000
    assert kept[1] <= 10_000
    assert kept[2:] == [0, 0, 0]


@pytest.mark.parametrize(
    ("names", "end", "shown"),
    [
        (["a.west.internal", "b.west.internal", "plan-node-1"], ".west.internal", ["a", "b", "plan-node-1"]),
        (["a.west.internal", "b.east.internal"], ".internal", ["a.west", "b.east"]),
        (["a.west.internal", "plan-node-1"], "", ["a.west.internal", "plan-node-1"]),
        (["node-1", "node-2"], "", ["node-1", "node-2"]),
    ],
)
def test_nodes_are_named_without_the_domain_that_those_with_a_domain_share(
    page: Any, names: list[str], end: str, shown: list[str]
) -> None:
    found = page.evaluate(
        """async (names) => {
          const { sharedEnd, withoutEnd } = await import("/ui/drawing/formats.js");
          const end = sharedEnd(names);
          return [end, names.map((name) => withoutEnd(name, end))];
        }""",
        names,
    )

    assert found == [end, shown]


def test_arrows_of_one_moment_from_several_preemptors_do_not_lie_on_one_another(page: Any) -> None:
    curves = page.evaluate(
        """async () => {
          const { Arrows } = await import("/ui/drawing/view.js");
          const curves = [], nothing = () => {};
          const context = { bezierCurveTo: (...points) => curves.push(points) };
          for (const name of ["beginPath", "moveTo", "lineTo", "stroke", "fill"]) context[name] = nothing;
          const arrows = Object.create(Arrows.prototype);
          for (const fromY of [40, 56, 72]) arrows.arrow(context, {}, 100, fromY, 100, 300 + fromY);
          return curves;
        }"""
    )

    assert len({points[0] for points in curves}) == 3
