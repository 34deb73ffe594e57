"""The webhook as a program: reviews, limits, its certificate, and what users of `podium up` see."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme

from podium.app.admission import webhook
from podium.app.admission.webhook import PATH, AdmissionSettings, LiveAdmission
from podium.app.live import metrics
from podium.app.live.logs import Log
from podium.app.live.metrics import HealthSettings
from podium.client.credentials import ClusterAccess
from podium.framework.settings.configuration import default_configuration
from tests.app import forked
from tests.app.admission.test_decision import job, pod, workload
from tests.app.processes import START
from tests.app.serving.lives import up
from tests.client.api_server import NOW, APIServer
from tests.server.kubectl.command import program as kubectl
from tests.store.objects import Raw
from tests.store.objects import node as stored_node
from tests.waiting import GUARD_SECONDS, until

SETTINGS = AdmissionSettings(
    configuration=default_configuration(), dry_run=True, health=HealthSettings(port=0), limit_s=GUARD_SECONDS
)
OPENSSL = shutil.which("openssl")
CONFIGURATION = "podium-admission"


def review(raw: Raw, operation: str = "CREATE", old: Raw | None = None, **more: Any) -> Raw:
    group, _, version = raw["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": raw["kind"]}
    resource = {"group": group, "version": version, "resource": f"{raw['kind'].lower()}s"}
    request: Raw = {"uid": "u1", "kind": kind, "resource": resource, "operation": operation, "namespace": "shop"}
    request |= {"object": raw, "oldObject": old}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **more}}


def ask(url: str, body: Any, context: ssl.SSLContext | None = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=GUARD_SECONDS, context=context) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


Story = Callable[[LiveAdmission, Callable[..., Awaitable[tuple[int, Any]]]], Awaitable[None]]


def play(story: Story, settings: AdmissionSettings = SETTINGS, *objects: Raw, waits: bool = True) -> APIServer:
    """Run the webhook at a cluster of two nodes with 4 CPUs each and these objects, while the story lasts."""

    async def run() -> APIServer:
        async with APIServer() as server:
            server.add(stored_node("n1", cpu=4), stored_node("n2", cpu=4), *objects)
            program = LiveAdmission(ClusterAccess(name="test", server=server.url), settings, Log(lambda: NOW, "text"))
            task = asyncio.ensure_future(program.run())
            await until(lambda: program.url)

            async def post(body: Any, context: ssl.SSLContext | None = None) -> tuple[int, Any]:
                return await asyncio.to_thread(ask, f"{program.url}{PATH}", body, context)

            if waits:
                await until(lambda: program.in_sync)
            try:
                await story(program, post)
            finally:
                program.stop()
                assert await task == 0
            return server

    return asyncio.run(run())


def test_a_review_is_answered_by_its_uid_and_always_allowed() -> None:
    async def story(program: LiveAdmission, post: Any) -> None:
        code, answer = await post(review(workload(replicas=9)))
        assert code == 200
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response = answer["response"]
        assert (response["uid"], response["allowed"]) == ("u1", True)
        assert response["warnings"][0] == "1 of 9 replicas finds no node: 2 nodes: Insufficient cpu"
        assert (await post(review(workload(replicas=8))))[1]["response"] == {"uid": "u1", "allowed": True}
        grown = await post(review(workload(replicas=12), "UPDATE", workload(replicas=3)))
        assert grown[1]["response"]["warnings"][0].startswith("1 of 9 replicas")
        text = program.metrics.text().decode()
        assert 'podium_admission_requests_total{kind="Deployment",result="warned"} 2.0' in text
        assert 'podium_admission_requests_total{kind="Deployment",result="silent"} 1.0' in text
        assert "podium_admission_duration_seconds_count 3.0" in text

    server = play(story)
    assert {request.verb for request in server.sent} <= {"get", "list", "watch"}


def test_other_kinds_and_operations_are_allowed_without_a_decision() -> None:
    async def story(program: LiveAdmission, post: Any) -> None:
        silent = {"uid": "u1", "allowed": True}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        assert (await post(review(config)))[1]["response"] == silent
        assert (await post(review(pod("9"), "DELETE")))[1]["response"] == silent
        foreign = {**job(99), "apiVersion": "batch.example.com/v1"}
        for raw in (foreign, {**workload(replicas=99), "apiVersion": "apps.example.com/v1"}):
            assert (await post(review(raw)))[1]["response"] == silent
        for resource in ("pods", ["pods"], {"resource": ["pods"]}, {"group": 1, "resource": {}}):
            assert (await post(review(pod("9"), resource=resource)))[1]["response"] == silent
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}
        pods = {"group": "", "version": "v1", "resource": "pods"}
        for other in (binding, None, 7):
            assert (await post(review(pod("9"), resource=pods, object=other)))[1]["response"] == silent
        assert 'podium_admission_requests_total{kind="other",result="other"} 7.0' in program.metrics.text().decode()

    play(story)


def test_a_scaled_workload_is_decided_by_its_template() -> None:
    def scale(name: str, replicas: int) -> Raw:
        meta = {"name": name, "namespace": "shop"}
        return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": replicas}}

    kinds = ("Deployment", "ReplicaSet", "StatefulSet")

    async def story(program: LiveAdmission, post: Any) -> None:
        for kind in kinds:
            resource = {"group": "apps", "version": "v1", "resource": f"{kind.lower()}s"}
            more = {"resource": resource, "subResource": "scale"}
            warned = (await post(review(scale("new", 12), "UPDATE", scale("new", 3), **more)))[1]["response"]
            assert warned["warnings"][0] == "1 of 9 replicas finds no node: 2 nodes: Insufficient cpu"
            for after, before in ((scale("new", 1), scale("new", 3)), (scale("unknown", 99), scale("unknown", 1))):
                assert "warnings" not in (await post(review(after, "UPDATE", before, **more)))[1]["response"]
            assert f'kind="{kind}",result="warned"}} 1.0' in program.metrics.text().decode()

    play(story, SETTINGS, *(workload(replicas=3, kind=kind) for kind in kinds))


@pytest.mark.parametrize(
    "body", [b"no json", {}, {"apiVersion": "admission.k8s.io/v1"}, {**review(pod()), "apiVersion": "v1"}]
)
def test_what_is_no_review_is_refused(body: Any) -> None:
    async def story(program: LiveAdmission, post: Any) -> None:
        assert (await post(body))[0] == 400

    play(story)


def test_large_bodies_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveAdmission, "body_bytes", 1000)

    async def story(program: LiveAdmission, post: Any) -> None:
        assert (await post(b" " * 2000))[0] == 413

    play(story)


def test_an_object_that_cannot_be_decided_is_allowed() -> None:
    async def story(program: LiveAdmission, post: Any) -> None:
        for raw in (pod(priorityClassName="unknown"), {**pod(), "spec": {"containers": 7}}):
            assert (await post(review(raw)))[1]["response"] == {"uid": "u1", "allowed": True}
        assert 'kind="Pod",result="failed"} 2.0' in program.metrics.text().decode()

    play(story)


def test_after_the_time_limit_the_answer_has_no_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    async def story(program: LiveAdmission, post: Any) -> None:
        monkeypatch.setattr(webhook, "decide", lambda *_: ended.wait(GUARD_SECONDS))
        assert (await post(review(pod("9"))))[1]["response"] == {"uid": "u1", "allowed": True}
        # The first decision still runs, and there is no room for another.
        assert (await post(review(pod("9"))))[1]["response"] == {"uid": "u1", "allowed": True}
        ended.set()
        text = program.metrics.text().decode()
        assert 'kind="Pod",result="timeout"} 1.0' in text
        assert 'kind="Pod",result="busy"} 1.0' in text

    settings = AdmissionSettings(
        configuration=default_configuration(), health=HealthSettings(port=0), limit_s=0.05, concurrency=1, dry_run=True
    )
    play(story, settings)


def test_an_answer_says_that_the_cluster_is_not_known_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LiveAdmission, "components", lambda *_, **__: [])

    async def story(program: LiveAdmission, post: Any) -> None:
        response = (await post(review(pod("9"))))[1]["response"]
        assert response["warnings"] == ["podium has checked nothing: its view of the cluster is not in sync yet"]
        assert 'kind="Pod",result="unsynced"} 1.0' in program.metrics.text().decode()

    play(story, waits=False)


def test_a_certificate_that_is_rotated_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_RELOADED_EACH_S", 0.02)
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    def issue() -> ssl.SSLContext:
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        files[1].write_bytes(issued.private_key_pem.bytes())
        files[0].write_bytes(issued.cert_chain_pems[0].bytes())
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    first = issue()
    health = HealthSettings(port=0, certificate_file=str(files[0]), key_file=str(files[1]))

    async def story(program: LiveAdmission, post: Any) -> None:
        assert (await post(review(pod()), first))[0] == 200
        second = issue()

        async def is_used() -> bool:
            try:
                return bool((await post(review(pod()), second))[0] == 200)
            except urllib.error.URLError:
                return False

        async with asyncio.timeout(GUARD_SECONDS):
            while not await is_used():
                await asyncio.sleep(0.02)
        files[0].write_text("broken")
        await asyncio.sleep(0.1)
        assert (await post(review(pod()), second))[0] == 200

    play(story, msgspec.structs.replace(SETTINGS, health=health))


def configuration(port: int) -> Raw:
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": resources}
        for group, resources in (("", ["pods"]), ("apps", ["deployments"]))
    ]
    hook = {
        "name": "warn.podium.dev",
        "rules": rules,
        "clientConfig": {"url": f"https://127.0.0.1:{port}{PATH}"},
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "timeoutSeconds": 30,
        "admissionReviewVersions": ["v1"],
    }
    group = "admissionregistration.k8s.io/v1"
    return {
        "apiVersion": group,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [hook],
    }


@contextmanager
def admission(kubeconfig: Path, *args: str) -> Iterator[str]:
    """Provide the URL of `podium admission` as a process."""
    words = ("admission", "--kubeconfig", str(kubeconfig), *args)
    process = forked.start(START, *words, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    timer = threading.Timer(GUARD_SECONDS, process.kill)
    timer.start()
    url, log = "", list[str]()
    try:
        assert process.stderr is not None
        for line in process.stderr:
            log.append(line)
            if "listening" in line:
                url = line.split("url=")[1].split()[0].strip('"')
            if "answering reviews" in line:
                break
        else:
            raise AssertionError("".join(log))
        timer.cancel()
        yield url
    finally:
        timer.cancel()
        process.terminate()
        process.communicate()


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl")
def test_users_of_podium_up_get_the_warnings(tmp_path: Path) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with up(tmp_path, "--port", "0", "--nodes", "2") as life:
        assert life.ask("POST", path, configuration(1))[0] == 201
        with admission(life.kubeconfig, "--self-signed", CONFIGURATION, "--port", "0", "--time-limit", "30s") as url:
            hook = life.ask("GET", f"{path}/{CONFIGURATION}")[1]["webhooks"][0]
            bundle = base64.b64decode(hook["clientConfig"]["caBundle"]).decode()
            assert bundle.count("BEGIN CERTIFICATE") == 1
            wanted = configuration(int(url.rpartition(":")[2]))
            wanted["webhooks"][0]["clientConfig"]["caBundle"] = hook["clientConfig"]["caBundle"]
            assert life.ask("PUT", f"{path}/{CONFIGURATION}", wanted)[0] == 200
            deployment = workload(cpu="900")
            deployment["metadata"]["namespace"] = "default"
            if kubectl() is None:
                pytest.skip("needs kubectl")
            file = tmp_path / "deployment.json"
            file.write_text(json.dumps(deployment))
            command = [str(kubectl()), "--kubeconfig", str(life.kubeconfig), "create", "-f", str(file)]
            found = subprocess.run(command, capture_output=True, text=True, check=True)
            assert "created" in found.stdout
            assert found.stderr.splitlines()[0] == (
                "Warning: no node of this cluster can run a pod of this Deployment: "
                "2 nodes: asks for more cpu than the node has"
            )
