"""Sweeps in an Indexed Job on `podium up`, whose workers are processes of this machine."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

import podium
from podium.app.console.command import podium as command
from podium.app.sweeping import sweep_job
from podium.testing import ControlPlane
from tests.app.sweeping.process_kubelet import NODE, ProcessKubelet
from tests.waiting import GUARD_SECONDS

LOOP = str(Path(__file__).parents[3] / "examples" / "preemption-loop.yaml")
SEEDS = 6
VARIED = ["-f", LOOP, "--vary", "maxFutilePreemptions=0,2", "--seeds", str(SEEDS)]
PODS = 3
INDEXED: dict[str, Any] = {"completionMode": "Indexed", "completions": 1}
CAUSES = (
    "ErrImagePull: no such image",
    "is not scheduled: 0/1 nodes are available: 1 Insufficient cpu",
    "exceeded quota: few",
)


@pytest.fixture(autouse=True)
def _polls_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_job, "_POLL_S", 0.05)


@contextmanager
def cluster(monkeypatch: pytest.MonkeyPatch, *nodes: dict[str, Any]) -> Iterator[ControlPlane]:
    """Yield a cluster of the current context, whose kubelets a test replaces."""
    without = ["kubelet", "node-lifecycle-controller"]
    with ControlPlane(objects=nodes, real_time=True, speed=20, without=without) as plane, plane.serve() as served:
        monkeypatch.setenv("KUBECONFIG", str(served.kubeconfig))
        yield plane


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    with cluster(monkeypatch, NODE) as plane:
        yield plane


@pytest.fixture(params=["file", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of an empty folder, in files and in an object store."""
    if request.param == "file":
        yield str(tmp_path)
        return
    # botocore needs an older python-dateutil than the locked one.
    pytest.importorskip("s3fs", reason="install s3fs and moto[server] in an environment of their own")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "ENDPOINT_URL": f"http://{host}:{port}",
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    fsspec.filesystem("s3").mkdir("bucket")
    yield "s3://bucket/sweep"
    server.stop()


def sweep(*args: str) -> Result:
    return CliRunner().invoke(command, ["sweep", *VARIED, *args], catch_exceptions=False)


def on_cluster(folder: str, *args: str) -> Result:
    return sweep("--kubernetes", "--folder", folder, "--pods", str(PODS), "-o", "csv", *args)


def files_of(folder: str, part: str) -> list[str]:
    files, path = fsspec.url_to_fs(folder)
    files.invalidate_cache()
    return [file for file in files.find(f"{path}/{part}") if not file.endswith("/")]


@contextmanager
def _deleting(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Report for the running pod that its image cannot be pulled, and delete the Job once all causes were said."""
    reported: list[str] = []
    polls: list[str] = []
    problems = sweep_job._Job.problems

    async def noted(job: sweep_job._Job) -> list[tuple[str, str]]:
        found = await problems(job)
        polls.append(" ".join(text for _, text in found))
        return found

    monkeypatch.setattr(sweep_job._Job, "problems", noted)

    def report() -> None:
        while not (bound := [pod for pod in plane.pods() if pod["spec"].get("nodeName")]):
            time.sleep(0.02)
        waits = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
        status = {"name": "sweep", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": waits}
        plane.patch(
            "Pod", bound[0]["metadata"]["name"], {"status": {"containerStatuses": [status]}}, "default", "status"
        )
        reported.append(bound[0]["metadata"]["name"])
        # A poll ends after its causes were said; a test that fails ends, too.
        tries = iter(range(round(50 * GUARD_SECONDS)))
        while not any(all(cause in poll for cause in CAUSES) for poll in polls[:-1]) and next(tries, None) is not None:
            time.sleep(0.02)
        for job in plane.objects("Job"):
            plane.delete("Job", job["metadata"]["name"])

    thread = threading.Thread(target=report)
    thread.start()
    yield reported
    thread.join()


def test_the_answer_is_the_same_though_a_third_of_the_workers_is_killed(plane: ControlPlane, folder: str) -> None:
    draw = random.Random(28)
    dies = {number: draw.randrange(3) for number in draw.sample(range(PODS), PODS // 3)}
    kubelet = ProcessKubelet(plane, lambda: len(files_of(folder, "runs")), dies)
    kubelet.start()
    try:
        result = on_cluster(folder)
    finally:
        kubelet.stop()

    assert (result.exit_code, kubelet.killed, kubelet.started) == (0, PODS // 3, PODS + PODS // 3), result.stderr
    assert result.stdout == podium.sweep(LOOP, {"maxFutilePreemptions": [0, 2]}, seeds=SEEDS).csv()
    assert plane.objects("Job") == []
    assert files_of(folder, "plans") == []
    # All runs have their outcomes, so that no Job is needed.
    assert on_cluster(folder).stdout == result.stdout


def test_the_job_is_printed_on_request(tmp_path: Path) -> None:
    template = tmp_path / "job.yaml"
    template.write_text(
        """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: any, namespace: batch}
        spec:
          activeDeadlineSeconds: 3600
          template:
            spec:
              restartPolicy: Never
              containers:
              - {name: main, image: registry/podium:1, envFrom: [{secretRef: {name: store}}]}
        """
    )

    job = yaml.safe_load(on_cluster(str(tmp_path / "runs"), "--dry-run", "--job", str(template), "--jobs", "2").stdout)

    (container,) = job["spec"]["template"]["spec"]["containers"]
    (plan,) = (tmp_path / "runs" / "plans").iterdir()
    assert (job["metadata"]["namespace"], job["spec"]["completions"], job["spec"]["activeDeadlineSeconds"]) == (
        "batch",
        PODS,
        3600,
    )
    assert (container["image"], container["envFrom"]) == ("registry/podium:1", [{"secretRef": {"name": "store"}}])
    assert container["resources"]["requests"]["cpu"] == "2"
    assert container["args"] == [
        "sweep",
        f"--folder={tmp_path / 'runs'}",
        f"--shard=$(JOB_COMPLETION_INDEX)/{PODS}",
        "--jobs=2",
        f"--planned={plan.name}",
    ]


def test_workers_refuse_a_plan_that_is_not_what_was_written(tmp_path: Path) -> None:
    folder = str(tmp_path)
    on_cluster(folder, "--dry-run")
    (plan,) = (tmp_path / "plans").iterdir()

    def play(name: str) -> Result:
        return CliRunner().invoke(command, ["sweep", "--folder", folder, "--planned", name, "--jobs", "1"])

    plan.write_bytes(plan.read_bytes() + b"more")
    changed, absent = play(plan.name), play("absent")

    assert [result.exit_code for result in (changed, absent)] == [1, 1]
    assert "is not what was written" in changed.stderr
    assert "it has no plan absent" in absent.stderr


def test_causes_that_keep_pods_from_running_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sweep_job, "_TEMPLATE", {**sweep_job._TEMPLATE, "metadata": {"namespace": "default"}})
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": "2"}},
    }
    small = {**NODE, "status": {**NODE["status"], "allocatable": {"cpu": "1", "memory": "64Gi", "pods": "110"}}}
    with cluster(monkeypatch, small, quota) as plane, _deleting(plane, monkeypatch) as reported:
        result = on_cluster(str(tmp_path))

    assert result.exit_code == 1
    assert [cause for cause in CAUSES if cause not in result.stderr] == []
    assert "has been deleted; the same command plays what is missing" in result.stderr
    assert reported


def test_a_job_that_fails_says_why_and_is_replaced_by_the_next(plane: ControlPlane, tmp_path: Path) -> None:
    sabotaged = {**sweep_job._TEMPLATE, "spec": {**sweep_job._TEMPLATE["spec"], "backoffLimitPerIndex": 0, **INDEXED}}
    template = tmp_path / "job.json"
    template.write_bytes(msgspec.json.encode({**sabotaged, "metadata": {"name": "any"}}))
    folder = str(tmp_path / "runs")
    kubelet = ProcessKubelet(plane, lambda: 0, dict.fromkeys(range(PODS), 0))
    kubelet.start()
    try:
        failed = on_cluster(folder, "--job", str(template))
        again = on_cluster(folder, "--job", str(template))
    finally:
        kubelet.stop()

    assert (failed.exit_code, again.exit_code) == (1, 0), again.stderr
    assert "has failed" in failed.stderr
    assert f"indexes: 0-{PODS - 1}" in failed.stderr
    assert "Error, exit code" in failed.stderr
