"""The live page in a real browser: live updates, changes and answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.app import forked
from tests.app.processes import START
from tests.app.reporting.browser import PATIENCE_MS, open_browser
from tests.app.serving.lives import Life, up
from tests.store.objects import node, pod, priority_class
from tests.waiting import GUARD_SECONDS

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
TOKEN = "a-token-that-is-long-enough"  # the token of a test
HOSTILE = "</script><img src=x onerror=document.title=1><b>"
EVALUATING = f"from podium.app.serving.page import now; now._LEAST_INTERVAL_S = 0.0; {START}"
"""A server that evaluates the cluster again as soon as it changes; otherwise that takes 15 seconds."""

READING_OFTEN = "{ const later = setTimeout; window.setTimeout = (act, ms) => later(act, ms === 5000 ? 500 : ms); }"
"""A first view that reads the evaluation again each half second; otherwise that takes 5 seconds."""

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
IS_THERE = "(name) => podium.page.cluster.story?.scene.stories[0].find({kind: 'pod', name}).pods.length === 1"
IS_GONE = """(name) => {
  const [story] = podium.page.cluster.story.scene.stories, [pod] = story.find({kind: "pod", name}).pods;
  return pod !== undefined && story.pods.ended[pod] !== Infinity;
}"""
FIVE_RUN = """() => [...document.querySelectorAll("tbody tr")]
  .filter((row) => /(moved|each)-.*Running/.test(row.innerText)).length === 5"""
IS_ON = """([name, node]) => {
  const [story] = podium.page.cluster.story?.scene.stories || [];
  const found = story ? story.find({kind: "pod", name}).pods : [];
  return found.length === 1 && story.nodeName(story.pods.node[found[0]]) === node;
}"""


class Visit:
    """A page in a browser, with what it complained of and where it asked for something."""

    def __init__(self, browser: Any, server: str, place: str = "", **options: Any) -> None:
        self.server = server
        self.context = browser.new_context(viewport={"width": 1200, "height": 800}, **options)
        self.context.add_init_script(READING_OFTEN)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.go(place)

    def go(self, place: str) -> None:
        self.page.goto(f"{self.server}/ui/{place}")

    def shown(self) -> Visit:
        self.page.wait_for_selector("html[data-drawn]", state="attached")
        return self

    def wait(self, condition: str, *arguments: Any) -> None:
        self.page.wait_for_function(condition, arg=arguments[0] if arguments else None)

    def write(self, text: str) -> None:
        self.page.fill(".object-panel textarea", text)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def message(self) -> str:
        self.page.wait_for_selector(".message")
        return str(self.page.inner_text(".messages:not(:empty)"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def life(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Provide a control plane with the nodes node-1 and node-2."""
    folder = tmp_path_factory.mktemp("up")
    with up(folder, "--nodes", "2", "--port", "0", code=EVALUATING, forks_workers=True) as running:
        running.ask("POST", CLASSES, priority_class("high", 1_000))
        yield running


@contextmanager
def visiting(browser: Any, server: str, place: str = "", **options: Any) -> Iterator[Visit]:
    """Provide a visit without errors on the console or requests to other hosts."""
    visit = Visit(browser, server, place, **options)
    try:
        yield visit
        assert visit.complaints == []
        assert [url for url in visit.asked if not url.startswith((f"{server}/ui/", f"{server}/api"))] == []
    finally:
        visit.context.close()


def choose(visit: Visit, name: str, file: Path) -> None:
    """Press a button that asks for a file, and choose it."""
    with visit.page.expect_file_chooser() as chooser:
        visit.press(name)
    chooser.value.set_files(file)


def cordon(life: Life, name: str, *, does: bool) -> None:
    _, raw = life.ask("GET", f"/api/v1/nodes/{name}")
    raw["spec"] = {**raw.get("spec", {}), "unschedulable": does}
    assert life.ask("PUT", f"/api/v1/nodes/{name}", raw)[0] == 200


def test_the_first_view_says_what_is_wrong_and_its_buttons_ask_the_questions(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("wrong", cpu=1000))
    with visiting(browser, life.server) as visit:
        visit.shown().page.wait_for_selector(".problem:has-text('asks for more cpu than the node has')")
        assert visit.page.title() == "Podium: Now"
        row = visit.page.locator(".problem:has-text('default/wrong')")
        visit.page.wait_for_selector(".problem:has-text('default/wrong'):has-text('no single change')")
        for section, empty in (
            ("budgets", "no budget stops a drain"),
            ("losses", "every pod finds a place"),
            ("nodes", "Every node is ready"),
            ("preemptions", "No preemption is on record"),
        ):
            visit.page.wait_for_selector(f"#{section}:has-text('{empty}')")
        row.get_by_role("button", name="Explain").click()
        visit.page.wait_for_selector("table.verdicts")
        cordon(life, "node-1", does=True)
        visit.go("")
        visit.page.wait_for_selector("#nodes .problem:has-text('cordoned')")
        visit.page.click("#nodes .problem >> text=What if it fails")
        visit.page.wait_for_selector(".headline:has-text('failure of node-1')")
        assert visit.page.input_value(".form input >> nth=0") == "node-1"
    life.ask("DELETE", f"{PODS}/wrong?gracePeriodSeconds=0")
    cordon(life, "node-1", does=False)


def test_a_created_pod_appears_on_its_node_and_disappears_when_deleted(browser: Any, life: Life) -> None:
    with visiting(browser, life.server, "#cluster") as visit:
        visit.shown().page.wait_for_selector(".view")
        visit.page.wait_for_selector(".masthead .state:has-text('2 nodes')")
        life.ask("POST", PODS, pod("seen"))
        on = life.wait_for(PODS, lambda raw: raw["metadata"]["name"] == "seen" and raw["spec"].get("nodeName"))
        visit.wait(IS_ON, ["default/seen", on["spec"]["nodeName"]])

        visit.page.fill(".search input", "seen")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".links button:has-text('Explain')")
        assert "default/seen" in visit.page.inner_text(".details")
        life.ask("DELETE", f"{PODS}/seen?gracePeriodSeconds=0")
        visit.wait(IS_GONE, "default/seen")


def test_the_page_shows_pods_created_before_and_during_its_load(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("before"))
    with visiting(browser, life.server, "#cluster") as visit:
        visit.shown()
        visit.wait(IS_THERE, "default/before")
        # Another part is shown meanwhile, which holds no watch of pods.
        visit.page.click(".tabs >> text=What if")
        life.ask("DELETE", f"{PODS}/before?gracePeriodSeconds=0")
        visit.page.click(".tabs >> text=Cluster")
        visit.wait(IS_GONE, "default/before")


def test_a_pod_that_was_refused_before_the_page_was_opened_says_why_it_waits(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("refused", cpu=1000))
    life.wait_for(PODS, lambda raw: raw["metadata"]["name"] == "refused" and raw["status"].get("conditions"))
    with visiting(browser, life.server, "#cluster") as visit:
        visit.shown()
        visit.wait(IS_THERE, "default/refused")
        visit.page.fill(".search input", "refused")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".links button:has-text('Explain')")
        report = visit.page.inner_text(".details")
        assert "Insufficient cpu" in report
        assert "not attempted yet" not in report
        assert "+-" not in report
    life.ask("DELETE", f"{PODS}/refused?gracePeriodSeconds=0")


def test_a_pod_says_no_less_than_its_events_do_and_its_times_are_dates(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("elsewhere", spec={"schedulerName": "another"}))
    message = "0/2 nodes are available: another scheduler says so"
    about = {"kind": "Pod", "namespace": "default", "name": "elsewhere"}
    metadata = {"name": "elsewhere.1", "namespace": "default"}
    event = {"reason": "FailedScheduling", "message": message, "involvedObject": about, "metadata": metadata}
    stamped = {**event, "lastTimestamp": "2026-01-31T10:30:00Z", "count": 7}
    assert life.ask("POST", "/api/v1/namespaces/default/events", stamped)[0] == 201
    with visiting(browser, life.server, timezone_id="America/New_York") as visit:
        visit.shown().page.wait_for_selector(".problem:has-text('default/elsewhere')")
        visit.go("#cluster")
        visit.wait(IS_THERE, "default/elsewhere")
        visit.page.fill(".search input", "elsewhere")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".details h3:has-text('Events')")
        report = visit.page.inner_text(".details")
        assert "not attempted yet" not in report
        assert f"FailedScheduling {message} (7 times) 2026-01-31 05:30:00 (" in report
        assert re.search(r"waits for a node since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, for \d+", report)
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", visit.page.inner_text(".clock"))
    life.ask("DELETE", f"{PODS}/elsewhere?gracePeriodSeconds=0")


def test_an_object_is_made_checked_changed_and_deleted(browser: Any, life: Life) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"a": "1"}}
    with visiting(browser, life.server, "#objects/configmaps") as visit:
        visit.shown().page.wait_for_selector("select[aria-label=Kind] option", state="attached")
        visit.press("New")
        visit.write(json.dumps(made))
        visit.press("Check")
        assert "ConfigMap default/made would be created" in visit.message()
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[0] == 404
        visit.press("Create")
        visit.page.wait_for_selector("h2:has-text('ConfigMap default/made')")
        visit.page.wait_for_selector("tbody td:text-is('made')")
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[1]["data"] == {"a": "1"}

        visit.wait("() => document.querySelector('.object-panel textarea').value.includes('resourceVersion')")
        text = visit.page.input_value(".object-panel textarea")
        assert "managedFields" not in text
        visit.write(text.replace("a: '1'", "a: '2'\n  b: '3'"))
        visit.page.focus(".object-panel textarea")
        visit.page.keyboard.press("Control+Enter")
        visit.page.wait_for_selector(".message.good:has-text('ConfigMap default/made is saved')")
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[1]["data"] == {"a": "2", "b": "3"}

        visit.press("Delete")
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[0] == 200
        visit.press("Delete: sure?")
        visit.page.wait_for_selector(".message:has-text('It is gone')")
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[0] == 404
        visit.press("Create")
        visit.page.wait_for_selector(".message.good:has-text('ConfigMap default/made is created')")
        assert life.ask("GET", f"{CONFIG_MAPS}/made")[1]["data"] == {"a": "2", "b": "3"}
    life.ask("DELETE", f"{CONFIG_MAPS}/made")


def test_manifests_of_a_file_are_uploaded_created_and_undone(browser: Any, life: Life, tmp_path: Path) -> None:
    made = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-file-{number}"}} for number in (1, 2)]
    file = tmp_path / "maps.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    with visiting(browser, life.server, "#objects/configmaps") as visit:
        visit.shown().page.wait_for_selector("button:has-text('Undo'):disabled")
        choose(visit, "Upload", file)
        visit.page.wait_for_selector("h2:has-text('maps.json')")
        assert "of-file-1" not in visit.page.inner_text(".grid[aria-label=Objects]")
        visit.press("Create")
        visit.page.wait_for_selector(".message:has-text('ConfigMap default/of-file-2 is created')")
        assert [life.ask("GET", f"{CONFIG_MAPS}/of-file-{number}")[0] for number in (1, 2)] == [200, 200]
        visit.press("Undo")
        visit.page.wait_for_selector(".message:has-text('Undone: ConfigMap default/of-file-1 is created')")
        assert [life.ask("GET", f"{CONFIG_MAPS}/of-file-{number}")[0] for number in (1, 2)] == [404, 404]


def test_changes_of_the_page_are_undone_from_the_last_to_the_first(browser: Any, life: Life) -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "undone"}, "data": {"a": "first"}}
    life.ask("POST", CONFIG_MAPS, raw)
    with visiting(browser, life.server, "#objects/configmaps/default/undone") as visit:
        visit.shown().wait("() => document.querySelector('.object-panel textarea').value.includes('first')")
        visit.write(visit.page.input_value(".object-panel textarea").replace("first", "second"))
        visit.press("Save")
        visit.page.wait_for_selector(".message.good:has-text('is saved')")
        visit.press("Delete")
        visit.press("Delete: sure?")
        visit.page.wait_for_selector(".message:has-text('It is gone')")
        visit.press("Undo")
        visit.page.wait_for_selector(".message:has-text('Undone: ConfigMap default/undone is deleted')")
        assert life.ask("GET", f"{CONFIG_MAPS}/undone")[1]["data"] == {"a": "second"}
        visit.go("#objects/nodes/-/node-2")
        visit.page.wait_for_selector("h2:has-text('Node node-2')")
        visit.press("Cordon")
        visit.page.wait_for_selector(".message:has-text('Done.')")
        assert life.ask("GET", "/api/v1/nodes/node-2")[1]["spec"]["unschedulable"] is True
        visit.press("Undo")
        visit.page.wait_for_selector(".message:has-text('Undone: Node node-2 is changed')")
        assert "unschedulable" not in life.ask("GET", "/api/v1/nodes/node-2")[1]["spec"]
    life.ask("DELETE", f"{CONFIG_MAPS}/undone")


def test_an_object_that_others_have_changed_since_is_not_changed_back(browser: Any, life: Life) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    raw = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept"}}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
    life.ask("POST", budgets, {**raw, "spec": spec})
    with visiting(browser, life.server, "#objects/poddisruptionbudgets.policy/default/kept") as visit:
        visit.shown().wait("() => document.querySelector('.object-panel textarea').value.includes('minAvailable: 1')")
        visit.write(visit.page.input_value(".object-panel textarea").replace("minAvailable: 1", "minAvailable: 2"))
        visit.press("Save")
        visit.page.wait_for_selector(".message.good:has-text('is saved')")
        _, current = life.ask("GET", f"{budgets}/kept")
        life.ask("PUT", f"{budgets}/kept", {**current, "spec": {**spec, "minAvailable": 3}})
        visit.press("Undo")
        visit.page.wait_for_selector(".message.bad:has-text('changed again since')")
        assert life.ask("GET", f"{budgets}/kept")[1]["spec"]["minAvailable"] == 3
    life.ask("DELETE", f"{budgets}/kept")


def test_an_exported_state_is_imported_with_its_pods_on_their_nodes(browser: Any, life: Life, tmp_path: Path) -> None:
    secrets, apps = "/api/v1/namespaces/default/secrets", "/apis/apps/v1/namespaces/default"
    life.ask("POST", secrets, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "private"}})
    for path, kind, name, more in (
        ("deployments", "Deployment", "moved", {"replicas": 3}),
        ("daemonsets", "DaemonSet", "each", {}),
    ):
        template = {"metadata": {"labels": {"app": name}}, "spec": pod("any", cpu="1m")["spec"]}
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template, **more}
        raw = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        assert life.ask("POST", f"{apps}/{path}", raw)[0] == 201
    file = tmp_path / "cluster.json"
    with visiting(browser, life.server, "#objects/pods") as visit:
        visit.shown().wait(FIVE_RUN)
        with visit.page.expect_download() as download:
            visit.press("Export")
        download.value.save_as(file)
        visit.page.wait_for_selector(".message:has-text('exported, without Secrets')")
    exported = json.loads(file.read_text())["items"]
    assert "Secret" not in {found["kind"] for found in exported}
    on_nodes = {found["metadata"]["name"]: found["spec"]["nodeName"] for found in exported if found["kind"] == "Pod"}
    assert len(on_nodes) == 5
    folder = tmp_path / "other"
    folder.mkdir()
    with (
        up(folder, "--port", "0") as other,
        visiting(browser, other.server, "#objects/pods") as visit,
    ):
        choose(visit.shown(), "Import", file)
        visit.page.wait_for_selector(".message.good:has-text(' created, ')")
        other.wait_for(f"{apps}/daemonsets", lambda each: each.get("status", {}).get("updatedNumberScheduled") == 2)
        visit.wait(FIVE_RUN)
        found = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in other.items(PODS)}
        assert found == on_nodes
        visit.press("Undo")
        visit.page.wait_for_selector(".message:has-text('Undone: import of cluster.json')")
        assert other.ask("GET", f"{apps}/deployments/moved")[0] == 404
        # The browser reports what went with its owner, and so was not there to be deleted.
        visit.complaints = [each for each in visit.complaints if "404" not in each]
    for path in (f"{apps}/deployments/moved", f"{apps}/daemonsets/each", f"{secrets}/private"):
        life.ask("DELETE", path)


def test_an_import_creates_bound_pods_before_those_that_could_take_their_room(
    browser: Any, life: Life, tmp_path: Path
) -> None:
    only = {"nodeSelector": {"kubernetes.io/hostname": "tight"}}
    waiting = [pod(f"waits-{number}", cpu=10, spec=only) for number in range(3)]
    bound = pod("bound", cpu=10, spec={"nodeName": "tight"})
    tight = {**node("tight"), "metadata": {"name": "tight", "labels": only["nodeSelector"]}}
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*waiting, bound, tight]}))
    with visiting(browser, life.server, "#objects/pods") as visit:
        choose(visit.shown(), "Import", file)
        visit.page.wait_for_selector(".message.good:has-text('5 created')")
        visit.page.wait_for_selector("tr:has-text('bound'):has-text('Running')")
        phases = [life.ask("GET", f"{PODS}/waits-{number}")[1]["status"]["phase"] for number in range(3)]
        assert phases == ["Pending"] * 3
    for name in ("bound", *(found["metadata"]["name"] for found in waiting)):
        life.ask("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
    life.ask("DELETE", "/api/v1/nodes/tight")


def test_objects_are_shown_page_by_page_found_by_name_and_kept_up_to_date(browser: Any, life: Life) -> None:
    names = [f"many-{number:04}" for number in range(620)]
    for name in names:
        life.ask("POST", CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    with visiting(browser, life.server, "#objects/configmaps") as visit:
        visit.shown().page.wait_for_selector("tr:has-text('many-0000')")
        visit.page.wait_for_selector(".rest:has-text('more')")
        visit.page.fill("input[aria-label='Name contains']", "many-06")
        visit.page.wait_for_selector("tr:has-text('many-0619')")
        assert visit.page.locator(".grid[aria-label=Objects] tbody tr").count() == 20
        life.ask("DELETE", f"{CONFIG_MAPS}/many-0619")
        visit.page.wait_for_selector("tr:has-text('many-0619')", state="detached")
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "many-0699"}}
        life.ask("POST", CONFIG_MAPS, made)
        visit.page.wait_for_selector("tr:has-text('many-0699')")
    for name in (*names[:-1], "many-0699"):
        life.ask("DELETE", f"{CONFIG_MAPS}/{name}")


def test_an_address_that_says_nothing_shows_the_page_all_the_same(browser: Any, life: Life) -> None:
    for place in ("#%zz", "#plans/drain/%7B", "#plans/nothing", "#objects/pots/x/y/z", "#objects/pods/-/-", "#x/y"):
        with visiting(browser, life.server, place) as visit:
            visit.shown().page.wait_for_selector("main > *")
            # That an object is not there the browser notes as well.
            visit.complaints[:] = [complaint for complaint in visit.complaints if "404" not in complaint]


def test_a_rejected_edit_shows_the_servers_message_and_loses_nothing(browser: Any, life: Life) -> None:
    with visiting(browser, life.server, "#objects/pods") as visit:
        visit.shown()
        visit.page.wait_for_selector("select[aria-label=Kind] option", state="attached")
        visit.press("New")
        for text, report in (
            ("kind: Pod\n  a: [", "line 2"),
            ("apiVersion: v1\nkind: Pot", "no kind Pot"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: A}\nspec: {containers: []}", "metadata.name"),
            ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {nodeNam: x, containers: [{name: a}]}", "nodeNam"),
        ):
            visit.write(text)
            visit.press("Create")
            visit.page.wait_for_selector(f".message.bad:has-text('{report}')")
            assert visit.page.input_value(".object-panel textarea") == text
        # Refusals are complained of by the browser, not by the page.
        assert all("Failed to load resource" in complaint for complaint in visit.complaints)
        visit.complaints.clear()


def test_a_concurrent_change_is_reported_and_not_overwritten(browser: Any, life: Life) -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "1"}}
    life.ask("POST", CONFIG_MAPS, raw)
    with visiting(browser, life.server, "#objects/configmaps/default/shared") as visit:
        visit.shown()
        visit.wait("() => document.querySelector('.object-panel textarea').value.includes('resourceVersion')")
        visit.write(visit.page.input_value(".object-panel textarea").replace("'1'", "'mine'"))
        life.ask("PUT", f"{CONFIG_MAPS}/shared", {**raw, "data": {"a": "theirs"}})
        visit.page.wait_for_selector(".message:has-text('It has changed on the server meanwhile')")
        visit.press("Save")
        visit.page.wait_for_selector(".message:has-text('nothing was saved')")
        assert life.ask("GET", f"{CONFIG_MAPS}/shared")[1]["data"] == {"a": "theirs"}
        visit.page.focus(".object-panel textarea")
        visit.page.evaluate("() => document.activeElement.setSelectionRange(5, 9)")
        visit.press("Load the newest")
        visit.wait("() => document.querySelector('.object-panel textarea').value.includes('theirs')")
        place = "() => document.querySelector('.object-panel textarea').selectionStart"
        assert visit.page.evaluate(place) == 5
        visit.complaints.clear()


def test_every_plugin_says_what_it_says_of_every_node(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("asked"))
    with visiting(browser, life.server, "#explain/default%2Fasked") as visit:
        visit.shown().page.wait_for_selector("table.scores")
        heads = visit.page.inner_text("table.scores thead")
        for head in ("NodeResourcesFit", "raw", "normalised", "weighted", "Total"):
            assert head in heads
        rows = visit.page.inner_text("table.verdicts tbody").splitlines()
        assert [row.split("\t")[0].removesuffix(" ●") for row in rows] == ["node-1", "node-2"]
        assert "✓" in rows[0]
        visit.page.select_option("select[aria-label=scores]", "raw")
        assert "normalised" not in visit.page.inner_text("table.scores thead")
        visit.page.fill("input[aria-label='Nodes whose name contains']", "-2")
        visit.wait("() => document.querySelectorAll('table.verdicts tbody tr').length === 1")
    life.ask("DELETE", f"{PODS}/asked?gracePeriodSeconds=0")


def test_a_question_is_answered_with_its_picture(browser: Any, life: Life) -> None:
    with visiting(browser, life.server, "#plans/drain") as visit:
        visit.shown()
        assert "which budget holds" in visit.page.inner_text(".hint >> nth=0")
        visit.page.fill(".form input >> nth=0", "node-1")
        visit.page.click("button.primary")
        visit.page.wait_for_selector(".headline:has-text('drain of node-1')")
        visit.page.wait_for_selector(".stories .view")
        visit.page.fill(".form input >> nth=0", "nowhere")
        visit.page.click("button.primary")
        visit.page.wait_for_selector(".message.bad:has-text('there is no node nowhere')")


def test_no_text_of_the_cluster_becomes_markup(browser: Any, life: Life) -> None:
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile"}, "data": {"a": HOSTILE}}
    life.ask("POST", CONFIG_MAPS, raw)
    hostile = pod("hostile", cpu="100")
    life.ask("POST", PODS, hostile)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": HOSTILE}
    patch = {"status": {"conditions": [condition], "nominatedNodeName": "node-1"}}
    request_body = {**life.ask("GET", f"{PODS}/hostile")[1], **patch}
    life.ask("PUT", f"{PODS}/hostile/status", request_body)
    with visiting(browser, life.server, "#objects/configmaps/default/hostile") as visit:
        visit.shown()
        visit.wait("(text) => document.querySelector('.editor pre').textContent.includes(text)", HOSTILE)
        visit.page.click(".tabs >> text=Cluster")
        visit.wait(IS_THERE, "default/hostile")
        visit.page.click(".tabs >> text=Explain")
        visit.page.fill(".form input >> nth=0", HOSTILE)
        visit.page.click("button.primary")
        visit.page.wait_for_selector(".message.bad")
        assert visit.page.query_selector_all("img, #page b") == []
        assert visit.page.title() == "Podium: Explain"
    life.ask("DELETE", f"{PODS}/hostile?gracePeriodSeconds=0")


def test_the_page_may_write_no_markup_even_if_it_wanted_to(browser: Any, life: Life) -> None:
    with visiting(browser, life.server, "#nodes") as visit:
        visit.shown()
        tried = visit.page.evaluate(
            "() => { try { document.body.innerHTML = '<i>x</i>' } catch (e) { return e.name } }"
        )
        assert tried == "TypeError"
        assert "TrustedHTML" in visit.complaints.pop()


def test_a_token_is_asked_for_and_kept_by_the_page_alone(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    with up(tmp_path, "--nodes", "1", "--port", "0", "--token-file", str(file)) as life:
        visit = Visit(browser, life.server, "#cluster")
        try:
            for given in ("another-token-that-is-long", TOKEN):
                visit.page.wait_for_selector("#token")
                visit.page.fill("#token", given)
                visit.press("Come in")
            visit.shown().page.wait_for_selector(".view")
            kept = "() => [localStorage.length, sessionStorage.length, document.cookie, location.href]"
            assert visit.page.evaluate(kept) == [0, 0, "", f"{life.server}/ui/#cluster"]
            visit.page.reload()
            visit.page.wait_for_selector("#token")
        finally:
            visit.context.close()


def test_a_scheduler_shows_what_it_knows_to_look_at(browser: Any, tmp_path: Path) -> None:
    with (
        up(tmp_path, "--nodes", "1", "--port", "0", "--no-scheduler") as life,
        _program(life, "scheduler", "--no-leader-elect", "--port", "0", "--page") as url,
        visiting(browser, url, "#cluster") as visit,
    ):
        visit.shown().page.wait_for_selector(".view")
        assert "podium scheduler, to look at" in visit.page.inner_text(".masthead")
        assert visit.page.query_selector("text=Objects") is None
        life.ask("POST", PODS, pod("seen"))
        visit.wait(IS_ON, ["default/seen", "node-1"])
        visit.go("#explain/default%2Fseen")
        visit.page.wait_for_selector("table.scores")


def test_the_grid_groups_nodes_and_shows_the_one_that_is_reached_by_keys(browser: Any, life: Life) -> None:
    zone = "topology.kubernetes.io/zone"
    for number in (1, 2):
        labelled = {"name": f"grid-{number}", "labels": {zone: "far"}}
        life.ask("POST", "/api/v1/nodes", {**node(f"grid-{number}"), "metadata": labelled})
    cordon(life, "grid-2", does=True)
    life.ask("POST", PODS, pod("half", cpu=5, spec={"nodeName": "grid-1"}))
    with visiting(browser, life.server, "#nodes") as visit:
        visit.shown().page.wait_for_selector("h2:has-text('zone far')")
        visit.page.wait_for_selector("small:has-text('2 nodes; 0% to 25%: 1, 50% to 70%: 1')")
        legend = visit.page.inner_text(".legend")
        for mark in ("95% and more", "cordoned or tainted", "not ready or under pressure", "selected"):
            assert mark in legend
        visit.page.focus("section:has-text('zone far') canvas")
        visit.page.keyboard.press("ArrowLeft")
        visit.page.wait_for_selector(".details h2:has-text('grid-1')")
        assert "1 pod; requested 50% of cpu: 5 of 10" in visit.page.inner_text(".details")
        visit.page.select_option("select[aria-label=colour]", "state")
        visit.page.wait_for_selector("small:has-text('2 nodes; ready: 1, cordoned or tainted: 1')")
        visit.page.click(".details >> text=What if it fails")
        visit.page.wait_for_selector(".headline:has-text('failure of grid-1')")
    life.ask("DELETE", f"{PODS}/half?gracePeriodSeconds=0")
    for number in (1, 2):
        life.ask("DELETE", f"/api/v1/nodes/grid-{number}")


ANSWERS_ON_NODES = {
    "fit": ({"manifests": json.dumps({"apiVersion": "v1", **pod("more", cpu="1m")})}, "fit: 50 or more: 2"),
    "pending": ({}, "lacks room: 2"),
    "survive": ({"target": "default/here"}, "none of its pods: 1, its pods survive: 1"),
    "fail": ({"nodes": "node-1"}, "fails: 1"),
}


@pytest.mark.parametrize("name", ANSWERS_ON_NODES)
def test_the_grid_shows_what_an_answer_says_about_nodes(browser: Any, life: Life, name: str) -> None:
    values, counts = ANSWERS_ON_NODES[name]
    life.ask("POST", PODS, pod("here", cpu=1, spec={"nodeName": "node-1"}))
    life.ask("POST", PODS, pod("waiting", cpu=1000))
    with visiting(browser, life.server, "#nodes") as visit:
        visit.shown().page.evaluate("([name, values]) => podium.page.askPlan(name, values)", [name, values])
        # The grid shows the answer before it knows what the evaluation says.
        held: list[Any] = []

        def hold(route: Any) -> None:
            held.append(route)

        visit.page.route("**/ui/now", hold)
        visit.page.click("text=Show on the grid of nodes")
        visit.page.wait_for_selector(f"small:has-text('{counts}')")
        assert visit.page.input_value("select[aria-label=colour]") == "answer"
        assert counts.split(":")[0] in visit.page.inner_text(".legend")
        for route in held:
            route.continue_()
    for each in ("here", "waiting"):
        life.ask("DELETE", f"{PODS}/{each}?gracePeriodSeconds=0")


def test_axe_finds_nothing_and_nothing_is_wider_than_the_window(browser: Any, life: Life) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    life.ask("POST", PODS, pod("named", cpu=1000))
    with visiting(browser, life.server) as visit:
        for place, there in (
            ("", ".problem:has-text('default/named')"),
            ("#nodes", ".node-grid canvas"),
            ("#cluster", ".view"),
            ("#objects/pods", "tbody tr"),
            ("#explain/default%2Fnamed", "table.verdicts"),
            ("#plans/drain", "button.primary"),
        ):
            visit.go(place)
            visit.shown().page.wait_for_selector(there)
            for theme, width in (("light", 420), ("dark", 1200)):
                visit.page.emulate_media(color_scheme=theme)
                visit.page.set_viewport_size({"width": width, "height": 900})
                visit.page.evaluate(TWO_FRAMES)
                found = axe.run(visit.page).response["violations"]
                named = [(each["id"], [at["html"][:160] for at in each["nodes"]]) for each in found]
                assert named == [], (place, theme, width)
                wider = visit.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
                assert wider <= 0, (place, theme, width)
    life.ask("DELETE", f"{PODS}/named?gracePeriodSeconds=0")


def test_the_tab_key_reaches_everything_in_the_first_view(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("reached", cpu=1000))
    with visiting(browser, life.server) as visit:
        visit.shown().page.wait_for_selector(".problem:has-text('default/reached') >> text=No single change")
        reached = []
        for _ in range(40):
            visit.page.keyboard.press("Tab")
            reached.append(visit.page.evaluate("() => document.activeElement.textContent"))
        assert {"Now", "Nodes", "What if", "Explain", "default/reached"} <= set(reached)
        visit.page.locator(".problem").get_by_role("button", name="Explain").first.focus()
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector("table.verdicts")
    life.ask("DELETE", f"{PODS}/reached?gracePeriodSeconds=0")


def test_ui_shows_a_cluster_with_the_rights_of_the_user_and_changes_nothing(browser: Any, life: Life) -> None:
    life.ask("POST", PODS, pod("looked-at", cpu=1000))
    with _program(life, "ui") as url, visiting(browser, url) as visit:
        visit.shown().page.wait_for_selector(".problem:has-text('asks for more cpu than the node has')")
        assert "podium ui, to look at" in visit.page.inner_text(".masthead")
        assert visit.page.query_selector("text=Objects") is None
        visit.page.click(".problem button.link:has-text('default/looked-at')")
        visit.page.wait_for_selector("table.verdicts")
        visit.go("#cluster")
        visit.wait(IS_THERE, "default/looked-at")
        visit.page.fill(".search input", "looked-at")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".details li:has-text('FailedScheduling')")
    life.ask("DELETE", f"{PODS}/looked-at?gracePeriodSeconds=0")


@contextmanager
def _program(life: Life, *arguments: str) -> Iterator[str]:
    """Provide a program at a control plane, with a page, once it knows what there is to show; where that is."""
    process = forked.start(
        START,
        *(*arguments, "--kubeconfig", str(life.kubeconfig), "--log-format", "json"),
        forks_workers=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        url = ""
        for line in process.stdout:
            report = json.loads(line)
            url = report.get("url", url)
            if report["msg"] == "watch caches are synced":
                yield url
                break
        else:
            raise AssertionError("it does not get to know all")
    finally:
        process.terminate()
        process.communicate(timeout=GUARD_SECONDS)


def test_a_new_node_is_shown_and_can_be_cordoned(browser: Any, life: Life) -> None:
    life.ask("POST", "/api/v1/nodes", node("node-3"))
    with visiting(browser, life.server, "#objects/nodes/-/node-3") as visit:
        visit.shown()
        visit.press("Cordon")
        visit.page.wait_for_selector(".message.good")
        visit.page.wait_for_selector("tbody tr:has-text('node-3') td:has-text('SchedulingDisabled')")
        assert life.ask("GET", "/api/v1/nodes/node-3")[1]["spec"]["unschedulable"] is True
    life.ask("DELETE", "/api/v1/nodes/node-3")
