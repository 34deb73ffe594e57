"""Requests that take long, while others are served."""

import asyncio
import json
import threading
from typing import Any

import aiohttp
import pytest

from podium.apirequests.request import Request, Response
from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.runtime.clock import SystemClock
from podium.server.http.server import Server
from podium.store.durable_journal import JournalError
from tests.store.objects import Raw
from tests.waiting import GUARD_SECONDS

LONG = "x" * 40_000
POLICY = "ValidatingAdmissionPolicy"


def plane_of() -> EmbeddedControlPlane:
    return assemble(open_store(0), SystemClock(), ControlPlaneSettings(), InitialContent()).plane


def config_map(name: str, text: str = "") -> Raw:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def creation(name: str, text: str = "") -> Request:
    return Request(verb="create", kind="ConfigMap", namespace="default", body=config_map(name, text))


class Held:
    """A router whose answers on other threads wait until the test lets them go."""

    def __init__(self, plane: EmbeddedControlPlane) -> None:
        self.router: Any = plane._router
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.loop_thread = threading.current_thread()
        plane._router = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.router, name)

    def answer(self, request: Request, now: int) -> Response:
        if threading.current_thread() is not self.loop_thread:
            self.has_begun.set()
            assert self.may_end.wait(GUARD_SECONDS)
        response: Response = self.router.answer(request, now)
        return response


async def begun(held: Held) -> None:
    assert await asyncio.get_running_loop().run_in_executor(None, held.has_begun.wait, GUARD_SECONDS)


def test_health_is_answered_during_a_long_request_and_all_else_waits_for_its_end() -> None:
    async def story() -> None:
        plane = plane_of()
        held = Held(plane)
        server = Server(plane)
        await server.start()
        running = asyncio.ensure_future(ControlPlaneRunner(plane, SystemClock()).run())
        maps = f"{server.address}/api/v1/namespaces/default/configmaps"
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{maps}?watch=1") as watched:

                async def code(method: str, url: str, body: Raw | None = None) -> int:
                    async with session.request(method, url, json=body) as response:
                        return response.status

                long = asyncio.ensure_future(code("POST", maps, config_map("long", LONG)))
                await begun(held)
                reads = [asyncio.ensure_future(code("GET", url)) for url in (maps, f"{server.address}/apis")]
                short = asyncio.ensure_future(code("POST", maps, config_map("short")))
                assert await code("GET", f"{server.address}/livez") == 200
                assert await code("GET", f"{server.address}/readyz") == 200
                assert not any(task.done() for task in (long, short, *reads))

                held.may_end.set()
                assert await asyncio.gather(long, short, *reads) == [201, 201, 200, 200]
                names: list[str] = []
                while len(names) < 2:
                    name = json.loads(await watched.content.readuntil(b"\n"))["object"]["metadata"]["name"]
                    names += [name] if name in ("long", "short") else []
                assert names == ["long", "short"]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await server.stop()

    asyncio.run(asyncio.wait_for(story(), GUARD_SECONDS))


def test_a_long_request_is_finished_even_if_its_client_is_gone() -> None:
    async def story() -> None:
        plane = plane_of()
        held = Held(plane)
        asked = asyncio.ensure_future(plane.respond(creation("long"), 40_000))
        await begun(held)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert plane.is_busy
        held.may_end.set()
        await plane.idle()
        assert plane.store.find("ConfigMap", "default/long") is not None

    asyncio.run(asyncio.wait_for(story(), GUARD_SECONDS))


@pytest.mark.parametrize(
    ("request_", "size", "is_long"),
    [
        (creation("a"), 100, False),
        (creation("a"), 40_000, True),
        (Request(verb="patch", kind="ConfigMap", key="default/large", body={"data": {"b": "c"}}), 20, True),
        (Request(verb="patch", kind="ConfigMap", key="default/small", body={"data": {"b": "c"}}), 20, False),
        (Request(verb="get", kind="ConfigMap", key="default/large"), 0, False),
        (Request(verb="deletecollection", kind="ConfigMap", namespace="default"), 0, True),
    ],
)
def test_requests_with_large_bodies_or_about_large_objects_leave_the_loop(
    request_: Request, size: int, is_long: bool
) -> None:
    plane = plane_of()
    assert plane.answer(creation("large", LONG)).code == 201
    assert plane.answer(creation("small")).code == 201
    assert plane._takes_long(request_, size) is is_long


def policy_of(*expressions: str, resources: tuple[str, ...] = ("configmaps",)) -> Raw:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*resources]}
    validations = [{"expression": expression} for expression in expressions]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": POLICY,
        "metadata": {"name": "checks"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations},
    }


def test_many_expressions_are_compiled_and_evaluated_off_the_loop() -> None:
    plane, spec = plane_of(), {"policyName": "checks", "validationActions": ["Deny"]}
    create = Request(verb="create", kind=POLICY, body=policy_of("object.data.size() < 9"))
    assert not plane._takes_long(create, 300)
    assert plane._takes_long(create, 10_000)

    assert (
        plane.answer(Request(verb="create", kind=POLICY, body=policy_of(*["object.data.size() < 9"] * 1_000))).code
        == 201
    )
    assert not plane._takes_long(creation("a"), 100)
    binding = {**policy_of(), "kind": f"{POLICY}Binding", "metadata": {"name": "checks"}, "spec": spec}
    assert plane.answer(Request(verb="create", kind=f"{POLICY}Binding", body=binding)).code == 201
    assert plane._takes_long(creation("a"), 100)


def test_types_in_expressions_are_checked_a_few_at_a_time() -> None:
    plane = plane_of()
    texts = [f"object.data.k{index} == 'some text of a length'" for index in range(1_000)]
    assert plane.answer(Request(verb="create", kind=POLICY, body=policy_of(*texts, "object.spec.a == 1"))).code == 201

    turns = 0
    while "status" not in (found := plane.store.get(POLICY, "checks").raw):
        turns += 1
        next_ns = plane.turn()
        assert "status" in plane.store.get(POLICY, "checks").raw or (next_ns is not None and next_ns <= plane.now())
    assert turns > 5
    [warning] = found["status"]["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[1000].expression"
    problem = "ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.a == 1\n | ......^\n"
    assert warning["warning"] == f"v1, Kind=ConfigMap: {problem}"


def test_a_check_of_types_ends_with_its_policy_and_begins_again_when_it_changes() -> None:
    plane, long = plane_of(), policy_of(*[f"object.data.k{index} == 'text'" for index in range(500)])
    assert plane.answer(Request(verb="create", kind=POLICY, body=long)).code == 201
    changed = policy_of("object.nothing == 1")
    assert plane.answer(Request(verb="update", kind=POLICY, key="checks", body=changed)).code == 200
    status = plane.store.get(POLICY, "checks").raw["status"]
    assert (status["observedGeneration"], len(status["typeChecking"]["expressionWarnings"])) == (2, 1)

    assert plane.answer(Request(verb="update", kind=POLICY, key="checks", body=long)).code == 200
    assert plane.answer(Request(verb="delete", kind=POLICY, key="checks")).code == 200
    while (next_ns := plane.turn()) is not None and next_ns <= plane.now():
        pass
    assert plane.store.find(POLICY, "checks") is None


def test_types_are_checked_for_ten_kinds_at_most() -> None:
    plane = plane_of()
    kinds = tuple("configmaps endpoints events limitranges namespaces nodes pods secrets serviceaccounts".split())
    kinds += tuple("persistentvolumes persistentvolumeclaims podtemplates services".split())
    assert (
        plane.answer(Request(verb="create", kind=POLICY, body=policy_of("object.no == 1", resources=kinds))).code == 201
    )

    [warning] = plane.store.get(POLICY, "checks").raw["status"]["typeChecking"]["expressionWarnings"]
    assert warning["warning"].count("undefined field 'no'") == 10
    assert warning["warning"].startswith("v1, Kind=ConfigMap: ")


def test_long_requests_run_one_after_the_other_and_an_error_reaches_its_caller_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane = plane_of()
    answer, report = plane._router.answer, []

    def noted(request: Request, now: int) -> Response:
        name = request.body["metadata"]["name"]
        report.append(name)
        if name == "a":
            raise JournalError("full")
        return answer(request, now)

    monkeypatch.setattr(plane._router, "answer", noted)

    async def story() -> None:
        both = (plane.respond(creation(name), 40_000) for name in ("a", "b"))
        failed, worked = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(failed, JournalError)
        assert isinstance(worked, Response)
        assert (worked.code, report, plane.is_busy) == (201, ["a", "b"], False)

    asyncio.run(story())
