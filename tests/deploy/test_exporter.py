"""The exporter's manifests, alerts and dashboard, and that Prometheus takes what the exporter serves."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import podium
from podium.api.times import SECOND
from podium.app.console.command import podium as command
from podium.app.exporter import exporter as exporter_program
from podium.app.exporter.evaluation import EvaluationSettings, evaluate
from podium.app.exporter.exporter import ExporterMetrics, ExporterSettings, LiveExporter
from podium.app.live.command import exporter
from podium.app.live.logs import Log
from podium.app.live.metrics import HealthSettings
from podium.app.live.options import ProgramOptions
from podium.app.planning.deciding.decisions import Decisions
from podium.client.credentials import ClusterAccess
from podium.framework.settings.configuration import default_configuration
from tests.app.exporter.clusters import Raw, Workload, cluster_of, node
from tests.client.api_server import NOW, APIServer
from tests.deploy.manifests import DEPLOY, base, chart, documents, of_kind
from tests.deploy.test_rbac import NEVER, granted
from tests.store.objects import node as stored_node
from tests.store.objects import running
from tests.waiting import GUARD_SECONDS, until
from tools import rbac
from tools.krew import HOME
from tools.site.navigation import address_of

MIXIN = DEPLOY / "mixin"
PROMTOOL, PROMETHEUS, JSONNET = map(shutil.which, ("promtool", "prometheus", "jsonnet"))
DOCUMENT = DEPLOY.parent / "docs" / "exporter.md"
SETTINGS = ExporterSettings(
    configuration=default_configuration(), dry_run=True, health=HealthSettings(port=0), interval_ns=SECOND // 10
)


def exporter_of_chart() -> list[Raw]:
    objects = chart(exporter={"enabled": True, "interval": "30s", "secret": "podium-exporter"})
    return [raw for raw in objects if raw["metadata"]["name"] == "test-exporter"]


def rules() -> list[dict[str, Any]]:
    (found,) = documents((MIXIN / "alerts.yaml").read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def metric_text() -> str:
    nodes, web = [node("n1"), node("n2")], Workload("web", ["n1"] * 3 + ["n2"] * 3)
    metrics = ExporterMetrics(lambda: NOW)
    metrics.latest = evaluate(Decisions(podium.load(cluster_of(nodes, web))), EvaluationSettings())
    return metrics.text().decode()


@pytest.mark.parametrize("objects", [base("exporter"), exporter_of_chart()], ids=["kustomize", "helm"])
def test_the_role_reads_what_the_exporter_watches_and_nothing_else(objects: list[Raw]) -> None:
    rights = granted(objects, "-exporter")
    assert rights == rbac.exporter_rights()
    assert {right.verb for right in rights} == {"list", "watch"}
    assert not {(right.group, right.resource) for right in rights} & NEVER


@pytest.mark.parametrize("objects", [base("exporter"), exporter_of_chart()], ids=["kustomize", "helm"])
def test_the_pod_is_restricted_and_its_options_exist(objects: list[Raw]) -> None:
    (deployment,) = of_kind(objects, "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    command, *options = container["args"]
    assert command == "exporter"
    known = {name for parameter in exporter.params for name in parameter.opts}
    assert {option.partition("=")[0] for option in options} <= known


@pytest.mark.parametrize(
    ("arguments", "interval_ns"),
    [((), 30 * SECOND), (("--interval", "1m30s"), 90 * SECOND), (("--interval", "45"), 45 * SECOND)],
)
def test_the_interval_is_a_duration(
    arguments: tuple[str, ...], interval_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[ExporterSettings] = []
    monkeypatch.setattr(ProgramOptions, "run", lambda program, make, settings: taken.append(settings))
    result = CliRunner().invoke(command, ["exporter", *arguments])
    assert (result.exit_code, [settings.interval_ns for settings in taken]) == (0, [interval_ns])


def test_an_interval_below_a_second_is_an_error() -> None:
    result = CliRunner().invoke(command, ["exporter", "--interval", "900ms"])
    assert result.exit_code == 1
    assert "Invalid value for --interval: write 1s or more" in result.output


def test_the_rule_of_the_operator_has_the_alerts_of_the_mixin() -> None:
    (rule,) = of_kind(base("exporter-monitoring"), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((MIXIN / "alerts.yaml").read_text())


def test_every_alert_has_a_runbook() -> None:
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", DOCUMENT.read_text(), re.MULTILINE)}
    for rule in rules():
        # The same address for all, below which the site is served.
        assert rule["annotations"]["runbook_url"] == f"{HOME}/{address_of('docs/exporter.md')}#{rule['alert'].lower()}"
        assert rule["alert"].lower() in headings


def test_alerts_and_dashboard_ask_for_metrics_that_exist() -> None:
    known = set(re.findall(r"^# TYPE (podium_\w+) ", metric_text(), re.MULTILINE))
    dashboard = json.loads((MIXIN / "dashboard.json").read_text())
    queries = [rule["expr"] for rule in rules()]
    queries += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    for query in queries:
        assert set(re.findall(r"podium_\w+", query)) <= known, query


def test_the_document_lists_every_metric_of_the_exporter() -> None:
    own = set(re.findall(r"^# TYPE (podium_\w+) (?:gauge|counter)$", metric_text(), re.MULTILINE))
    text = DOCUMENT.read_text()
    assert not [name for name in own if not name.endswith("_created") and f"`{name}`" not in text]


@pytest.mark.skipif(JSONNET is None, reason="needs jsonnet")
def test_the_mixin_has_alerts_and_dashboard() -> None:
    query = f"local m = import '{MIXIN}/mixin.libsonnet'; [m.prometheusAlerts, std.objectFields(m.grafanaDashboards)]"
    alerts, dashboards = json.loads(
        subprocess.run([JSONNET or "", "-e", query], capture_output=True, check=True).stdout
    )
    assert alerts == yaml.safe_load((MIXIN / "alerts.yaml").read_text())
    assert dashboards == ["podium-exporter.json"]


@pytest.mark.skipif(JSONNET is None, reason="needs jsonnet")
def test_the_address_of_the_runbooks_can_be_configured() -> None:
    config = "_config+:: {runbookURLPattern: 'https://docs.example.org/runbooks/%s'}"
    query = f"((import '{MIXIN}/mixin.libsonnet') + {{{config}}}).prometheusAlerts.groups[0].rules[0]"
    alert = json.loads(subprocess.run([JSONNET or "", "-e", query], capture_output=True, check=True).stdout)
    assert alert["annotations"]["runbook_url"] == f"https://docs.example.org/runbooks/{alert['alert'].lower()}"


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool")
def test_promtool_takes_the_metrics_and_the_alerts() -> None:
    promtool = PROMTOOL or ""
    subprocess.run([promtool, "check", "rules", str(MIXIN / "alerts.yaml")], check=True, capture_output=True)
    found = subprocess.run(
        [promtool, "check", "metrics"], input=metric_text().encode(), capture_output=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, b"")


@pytest.mark.skipif(PROMTOOL is None, reason="needs promtool")
def test_alerts_fire_when_they_should() -> None:
    file = Path(__file__).parent / "exporter_alerts_test.yaml"
    found = subprocess.run([PROMTOOL or "", "test", "rules", str(file)], capture_output=True, check=False, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def _read(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=GUARD_SECONDS) as response:
        return json.loads(response.read())


def test_the_exporter_follows_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_program, "_MOST_SKIPPED", 2)
    unchanged, evaluate_now = list[float](), LiveExporter._evaluate

    async def noted(program: LiveExporter, *arguments: Any) -> None:
        unchanged.append(program.metrics.unchanged._value.get())
        await evaluate_now(program, *arguments)

    monkeypatch.setattr(LiveExporter, "_evaluate", noted)

    async def story() -> None:
        async with APIServer() as server:
            server.add(stored_node("n1", cpu=4), stored_node("n2", cpu=4), running("a", node="n1", cpu=2))
            program = LiveExporter(ClusterAccess(name="test", server=server.url), SETTINGS, Log(lambda: NOW, "text"))
            task = asyncio.ensure_future(program.run())
            await until(lambda: program.metrics.latest is not None)
            report = await asyncio.to_thread(_read, f"{program.url}/report.json")
            assert report["failures/node"] == []
            # An evaluation is repeated after so many that no change required.
            await until(lambda: len(unchanged) > 1)
            assert unchanged[:2] == [0, 2]
            server.add(stored_node("n3", cpu=4))
            await until(lambda: program.metrics.latest.counts["node", "fits"] == 3)  # type: ignore[union-attr]
            program.stop()
            assert await task == 0
            assert {request.verb for request in server.sent} <= {"get", "list", "watch"}

    asyncio.run(story())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.mark.skipif(PROMETHEUS is None, reason="needs prometheus")
def test_prometheus_scrapes_the_exporter(tmp_path: Path) -> None:
    async def story() -> None:
        async with APIServer() as server:
            server.add(stored_node("n1"), stored_node("n2"))
            program = LiveExporter(ClusterAccess(name="test", server=server.url), SETTINGS, Log(lambda: NOW, "text"))
            task = asyncio.ensure_future(program.run())
            await until(lambda: program.metrics.latest is not None)
            address = f"127.0.0.1:{_free_port()}"
            target = {"targets": [program.url.removeprefix("http://")]}
            job = {"job_name": "podium-exporter", "scrape_interval": "1s", "static_configs": [target]}
            (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
            options = [
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address={address}",
                # It scrapes nothing before it has looked for targets: by default each 5 seconds.
                "--scrape.discovery-reload-interval=100ms",
            ]
            scraper = await asyncio.create_subprocess_exec(
                PROMETHEUS or "", *options, cwd=tmp_path, stderr=asyncio.subprocess.DEVNULL
            )
            query = f"http://{address}/api/v1/query?query=podium_failure_scopes%7Bscope%3D%22node%22%7D"
            values: dict[str, str] = {}
            async with asyncio.timeout(GUARD_SECONDS):
                while not values:
                    await asyncio.sleep(0.1)
                    with suppress(OSError):
                        found = await asyncio.to_thread(_read, query)
                        values = {each["metric"]["outcome"]: each["value"][1] for each in found["data"]["result"]}
            scraper.terminate()
            await scraper.wait()
            program.stop()
            await task
            assert values == {"fits": "2", "preempts": "0", "unplaced": "0"}

    asyncio.run(story())
