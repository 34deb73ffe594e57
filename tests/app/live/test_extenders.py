"""`podium scheduler` with extenders, over HTTP."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from aiohttp import web

from podium.api.errors import InputError
from podium.app.live.decisions import find_decision
from podium.app.live.live_program import LiveSettings
from podium.app.live.live_scheduler import check_settings
from podium.framework.extenders import EXTENDER
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from tests.app.live.running import ACCESS, LEASE, SETTINGS, Running, is_going, node_of
from tests.client.api_server import CUT, APIServer
from tests.client.extender_server import ExtenderServer
from tests.store.objects import node, pod, running
from tests.waiting import until


def settings_with(*extenders: dict[str, Any]) -> LiveSettings:
    raw = {"apiVersion": API_VERSION, "kind": KIND, "extenders": list(extenders)}
    return msgspec.structs.replace(SETTINGS, configuration=read_configuration(raw, "scheduler.yaml"))


def configured(server: ExtenderServer, **more: Any) -> LiveSettings:
    """With every verb that the server answers."""
    verbs = {f"{verb}Verb": verb for verb in server.answers}
    weight = {"weight": 1} if "prioritize" in server.answers else {}
    return settings_with({"urlPrefix": server.url, **verbs, **weight, **more})


def left(*names: str, **more: Any) -> Callable[[dict[str, Any]], Any]:
    """Return a filter that leaves some nodes, by names or as whole nodes, as it was asked."""

    def answer(args: dict[str, Any]) -> Any:
        if args["NodeNames"] is not None:
            return {"NodeNames": [name for name in args["NodeNames"] if name in names], **more}
        items = [item for item in args["Nodes"]["items"] if item["metadata"]["name"] in names]
        return {"Nodes": {"items": items}, **more}

    return answer


def play(story: Callable[[APIServer, ExtenderServer], Any], answers: dict[str, Any], **more: Any) -> None:
    async def run() -> None:
        async with APIServer() as server, ExtenderServer(answers, **more) as extender:
            server.add(node("n1"), node("n2"))
            await story(server, extender)

    asyncio.run(run())


def said(server: APIServer, name: str) -> str:
    """Return what the pod's condition says."""
    status = server.store.get("Pod", f"default/{name}").raw.get("status", {})
    return " ".join(condition.get("message", "") for condition in status.get("conditions", []))


def bound(server: APIServer, args: dict[str, Any]) -> Any:
    """Bind a pod as an extender is asked to."""
    key = f"{args['PodNamespace']}/{args['PodName']}"
    server.store.bind(key, args["Node"], now=server.now, uid=args["PodUID"])
    return {}


@pytest.mark.parametrize("takes_names", [False, True])
def test_nodes_are_refused_by_name_or_as_a_whole(takes_names: bool) -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender, nodeCacheCapable=takes_names)):
            await until(lambda: node_of(server, "a"))
        assert node_of(server, "a") == "n2"
        (args,) = extender.of("filter")
        assert args["Pod"]["metadata"]["name"] == "a"
        assert (args["Nodes"] is None, args["NodeNames"] is None) == (takes_names, not takes_names)
        if not takes_names:
            assert args["Nodes"]["items"][0]["status"]["allocatable"]

    play(story, {"filter": left("n2")})


def test_answers_with_fields_in_lower_case_are_understood() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender, nodeCacheCapable=True)):
            await until(lambda: node_of(server, "a") == "n1")

    play(story, {"filter": lambda args: {"nodenames": ["n1"], "nodes": None, "failedNodes": {"n2": "x"}, "error": ""}})


@pytest.mark.parametrize("best", ["n1", "n2"])
def test_the_node_that_an_extender_scores_highest_is_taken(best: str) -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender)):
            await until(lambda: node_of(server, "a"))
        assert node_of(server, "a") == best

    play(story, {"prioritize": lambda args: [{"Host": best, "Score": 10}]})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda args: {"Error": "no licence server"}, "no licence server"),
        (lambda args: web.Response(status=500), "code 500"),
        (lambda args: web.Response(text="<html>"), "the response is not JSON"),
        (lambda args: web.Response(text="[" * 100_000), "the response is not JSON"),
        (lambda args: web.Response(body=b'{"Error": "\xff"}'), "the response is not JSON"),
        (lambda args: web.StreamResponse(headers={"Content-Length": str(1 << 40)}), "an answer of more than"),
        (lambda args: [1], "its answer is not of type object"),
        (lambda args: {"Nodes": {"items": [{"metadata": 3}]}}, "metadata is not of type object"),
        (lambda args: {"FailedNodes": {"n1": 3}}, "FailedNodes is not of type string"),
        (lambda args: web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "code 302"),
    ],
)
def test_an_invalid_extender_answer_is_reported_on_the_pod(answer: Any, problem: str) -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender)):
            await until(lambda: problem in said(server, "a"))
            assert f"failed filter with extender at URL {extender.url}" in said(server, "a")
        assert node_of(server, "a") == ""

    play(story, {"filter": answer})


def test_an_unreachable_ignorable_extender_is_skipped() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        settings = settings_with({"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "ignorable": True})
        async with Running(server, settings):
            await until(lambda: node_of(server, "a"))

    play(story, {})


def test_the_lease_is_kept_and_the_cluster_watched_while_an_extender_is_silent() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        settings = msgspec.structs.replace(configured(extender, httpTimeout="10m"), lease=LEASE)
        async with Running(server, settings) as program:
            await until(lambda: bool(extender.of("filter")))
            asked = len(server.sent)
            server.add(pod("b"))
            await until(lambda: sum(request.kind == "Lease" for request in server.sent[asked:]) > 3)
            assert (await program.read("/readyz"))[0] == 200
            assert not program.task.done()
            extender.silent.clear()
            extender.ending.set()
            await until(lambda: node_of(server, "a") and node_of(server, "b"))

    play(story, {"filter": left("n1", "n2")}, silent={"filter"})


def test_an_answer_that_does_not_come_in_time_is_an_error() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender, httpTimeout="50ms")):
            await until(lambda: "no answer in 0.05s" in said(server, "a"))

    play(story, {"filter": left("n1")}, silent={"filter"})


@pytest.mark.parametrize("takes_names", [False, True])
def test_victims_are_those_that_the_extender_agrees_to(takes_names: bool) -> None:
    def agree(args: dict[str, Any]) -> Any:
        nodes = args["NodeNameToMetaVictims" if takes_names else "NodeNameToVictims"]
        victims = nodes["n2"]["Pods"]
        pods = [{"UID": victim["UID"] if takes_names else victim["metadata"]["uid"]} for victim in victims]
        return {"NodeNameToMetaVictims": {"n2": {"Pods": pods, "NumPDBViolations": 0}}}

    async def story(server: APIServer, extender: ExtenderServer) -> None:
        for name in ("n1", "n2"):
            server.add(running(f"low-{name}", cpu=8, node=name, priority=1))
        server.add(pod("high", cpu=8, priority=1000))
        async with Running(server, configured(extender, nodeCacheCapable=takes_names)):
            await until(lambda: is_going(server, "low-n2"))
        assert not is_going(server, "low-n1")
        assert set(extender.of("preempt")[0]["NodeNameToMetaVictims" if takes_names else "NodeNameToVictims"]) == {
            "n1",
            "n2",
        }

    play(story, {"preempt": agree})


def test_a_binding_extender_receives_the_binding_instead_of_the_api_server() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        extender.answers["bind"] = lambda args: bound(server, args)
        server.add(pod("a"))
        async with Running(server, configured(extender)):
            await until(lambda: node_of(server, "a"))
            await until(lambda: any(request.kind == "Event" for request in server.sent))
        assert [request for request in server.sent if request.subresource == "binding"] == []

    play(story, {"bind": lambda args: {}})


def test_a_binding_whose_answer_got_lost_is_looked_for_and_not_asked_for_again() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        async def bind(args: dict[str, Any]) -> Any:
            bound(server, args)
            return CUT

        extender.answers["bind"] = bind
        server.add(pod("a"))
        async with Running(server, configured(extender)):
            await until(lambda: any(request.kind == "Event" for request in server.sent))
        assert len(extender.of("bind")) == 1
        assert said(server, "a") == ""

    play(story, {"bind": lambda args: {}})


@pytest.mark.parametrize("ignorable", [False, True])
def test_a_binding_that_failed_is_the_api_servers_if_the_extender_is_ignorable(ignorable: bool) -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender, ignorable=ignorable)):
            if ignorable:
                await until(lambda: node_of(server, "a"))
            else:
                await until(lambda: "not today" in said(server, "a"))
                assert node_of(server, "a") == ""

    play(story, {"bind": lambda args: {"Error": "not today"}})


def test_an_extender_with_managed_resources_sees_only_pods_that_request_them() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        managed = [{"name": "example.com/licence", "ignoredByScheduler": True}]
        licensed = pod("licensed")
        resources = licensed["spec"]["containers"][0].setdefault("resources", {})
        for part in ("requests", "limits"):
            resources.setdefault(part, {})["example.com/licence"] = "1"
        server.add(pod("plain"), licensed)
        async with Running(server, configured(extender, managedResources=managed)):
            await until(lambda: node_of(server, "plain") and node_of(server, "licensed"))
        assert {args["Pod"]["metadata"]["name"] for args in extender.of("filter")} == {"licensed"}

    play(story, {"filter": left("n1")})


def test_with_dry_run_nothing_is_bound_though_extenders_are_asked() -> None:
    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        settings = msgspec.structs.replace(configured(extender), dry_run=True)
        async with Running(server, settings) as program:
            await until(lambda: program.said("would do"))
        assert extender.of("filter")
        assert extender.of("bind") == []
        assert node_of(server, "a") == ""

    play(story, {"filter": left("n1"), "bind": lambda args: {}})


def test_a_recorded_decision_includes_the_extender_answers(tmp_path: Path) -> None:
    file = tmp_path / "decisions.jsonl"

    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(node("n3"), pod("a"))
        settings = msgspec.structs.replace(configured(extender), decisions=str(file))
        async with Running(server, settings):
            await until(lambda: node_of(server, "a") == "n2")
        decision = find_decision(str(file), "default/a")[0]
        assert decision.scores["n2"][EXTENDER] == 30
        assert decision.totals["n2"] == sum(decision.scores["n2"].values())
        (refused,) = (verdict for verdict in decision.nodes if verdict.plugin == EXTENDER)
        assert (refused.names, refused.reasons) == (("n1",), ("no licence",))

    answers = {
        "filter": left("n2", "n3", FailedNodes={"n1": "no licence"}),
        "prioritize": lambda args: [{"Host": "n2", "Score": 3}],
    }
    play(story, answers)


def test_certificates_are_checked_where_an_authority_is_named(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    files = {}
    for name, trusted in (("right", authority), ("wrong", other)):
        trusted.cert_pem.write_to_path(str(tmp_path / name))
        files[name] = str(tmp_path / name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def story(server: APIServer, extender: ExtenderServer) -> None:
        server.add(pod("a"))
        async with Running(server, configured(extender, enableHTTPS=True, tlsConfig={"caFile": files["wrong"]})):
            await until(lambda: "certificate" in said(server, "a").lower())
        assert node_of(server, "a") == ""
        async with Running(server, configured(extender, enableHTTPS=True, tlsConfig={"caFile": files["right"]})):
            await until(lambda: node_of(server, "a") == "n2")
        server.add(pod("b"))
        async with Running(server, configured(extender, enableHTTPS=True)) as program:
            await until(lambda: node_of(server, "b") == "n2")
            assert program.said("an extender's certificate is not checked")

    play(story, {"filter": left("n2")}, ssl=context)


@pytest.mark.parametrize(
    ("extender", "problem"),
    [
        ({"urlPrefix": "extender.example"}, r"\.extenders\.urlPrefix: .* is not an http or https URL"),
        ({"urlPrefix": "ftp://u:secret@a"}, r"\.extenders\.urlPrefix: 'ftp://a' is not an http or https URL"),
        ({"urlPrefix": "https://a", "tlsConfig": {"caData": "%"}}, r"\.extenders\.tlsConfig\.caData: is not base64"),
        ({"urlPrefix": "https://a", "tlsConfig": {"caFile": "/none"}}, "holds no certificates of an authority"),
    ],
)
def test_an_extender_that_cannot_be_called_is_rejected_at_startup(extender: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        check_settings(ACCESS, settings_with(extender))

    assert "secret" not in str(raised.value)
