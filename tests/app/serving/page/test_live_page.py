"""The endpoints of the live page, and the rights that each one needs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podium.apirequests.authorization import Authorizer
from podium.app.serving.page import answering
from podium.app.serving.page.answering import Answering
from podium.app.serving.page.forms import FORMS, PLANS
from podium.app.serving.page.live_page import HEADERS, files
from podium.server.http.security import ServerSettings, Token
from tests.apirequests.test_authorization import bound, role
from tests.app.processes import run
from tests.app.serving.page.shows import OURS, reported, with_page
from tests.server.serving import Client, LocalBackend, with_server
from tests.store.objects import node, pod
from tests.waiting import until

TOKEN = "a-token-that-is-long-enough"  # the token of a test
READER = "another-token-that-is-long"
TOKENS = ServerSettings(tokens=(Token(text=TOKEN), Token(text=READER, reads_only=True)))
ASKED = {"question": "drain", "values": {}}


def test_a_process_that_answers_loads_no_http() -> None:
    code = "import sys, podium.app.serving.page.worker; print('aiohttp' in sys.modules)"

    assert run(code=code, real=True).stdout == "False\n"


def test_every_reply_of_the_page_lets_the_browser_run_nothing_but_its_own_scripts() -> None:
    async def check(client: Client) -> None:
        for path in (*files(), "/ui", "/ui/about", "/ui/nothing"):
            response, body = await client.reply("GET", path, headers=OURS, allow_redirects=False)
            assert {name: response.headers[name] for name, _ in HEADERS} == dict(HEADERS), (path, body)
        policy = dict(HEADERS)["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy

    with_page(check)


def test_the_page_itself_has_no_script_and_no_style_within_its_markup() -> None:
    for path, file in files().items():
        if file.content_type.startswith("text/html"):
            text = file.body.decode()
            assert "<style" not in text, path
            assert " style=" not in text, path
            assert " on" not in text.replace(" on ", ""), path
            assert text.count("<script") == text.count('<script type="module" src="'), path


def test_a_file_that_is_known_already_is_not_sent_again() -> None:
    async def check(client: Client) -> None:
        response, body = await client.reply("GET", "/ui/")
        assert (response.status, response.content_type) == (200, "text/html")
        assert body
        response, body = await client.reply("GET", "/ui/", headers={"If-None-Match": response.headers["ETag"]})
        assert (response.status, body) == (304, b"")
        response, _ = await client.reply("GET", "/ui", allow_redirects=False)
        assert (response.status, response.headers["Location"]) == (308, "/ui/")

    with_page(check)


@pytest.mark.parametrize(
    "path", ["/ui/..%2f__init__.py", "/ui/../live_page.py", "/ui/%00", "/ui/live_page.py", "/ui//etc/passwd", "/uix"]
)
def test_nothing_but_the_files_of_the_page_is_sent(path: str) -> None:
    async def check(client: Client) -> None:
        code, _ = await client.ask("GET", path, headers=OURS)
        assert code == 404

    with_page(check)


def test_without_a_page_there_is_nothing_there() -> None:
    async def check(client: Client) -> None:
        assert (await client.ask("GET", "/ui/"))[0] == 404

    with_server(check)


def test_a_browser_without_token_gets_page_files_but_no_cluster_data() -> None:
    async def check(client: Client) -> None:
        assert (await client.ask("GET", "/ui/"))[0] == 200
        for method, path in (("GET", "/ui/about"), ("POST", "/ui/ask"), ("POST", "/ui/read")):
            assert (await client.ask(method, path, ASKED if method == "POST" else None, headers=OURS))[0] == 401
        for token, reads_only in ((TOKEN, False), (READER, True)):
            headers = {**OURS, "Authorization": f"Bearer {token}"}
            code, about = await client.ask("GET", "/ui/about", headers=headers)
            assert (code, about["readOnly"]) == (200, reads_only)

    with_page(check, settings=TOKENS)


def test_the_page_follows_the_drawn_parts_of_nodes_and_pods() -> None:
    async def check(client: Client) -> None:
        raw = pod("a", node="n1")
        raw["metadata"]["annotations"] = {"note": "secret"}
        raw["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "secret"}]
        async with client.watch("/ui/watch/pods", **OURS) as pods:
            first = await pods.next()
            assert (first["type"], first["object"]["name"]) == ("ADDED", "default/there")
            end = await pods.next()
            assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            client.backend.store.create(raw, now=0)
            added = await pods.next()
            assert (added["type"], added["object"]["node"]) == ("ADDED", "n1")
            assert "secret" not in json.dumps(added)
            client.backend.store.delete("Pod", "default/a", now=0)
            assert (await pods.next())["type"] in ("MODIFIED", "DELETED")
        version = end["object"]["metadata"]["resourceVersion"]
        async with client.watch(f"/ui/watch/pods?resourceVersion={version}", **OURS) as pods:
            again = await pods.next()
            assert (again["type"], again["object"]["name"]) == ("ADDED", "default/a")
        assert (await client.ask("GET", "/ui/watch/pods?resourceVersion=x", headers=OURS))[0] == 400
        assert (await client.ask("GET", "/ui/watch/secrets", headers=OURS))[0] == 404

    with_page(check, node("n1"), pod("there"))


def test_the_page_gets_amounts_as_whole_numbers_and_only_what_it_draws() -> None:
    async def check(client: Client) -> None:
        def container(cpu: str, **more: Any) -> dict[str, Any]:
            return {"name": f"c-{cpu}", "image": "i", "resources": {"requests": {"cpu": cpu}}, **more}

        raw = pod("a", node="n1")
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-x", "uid": "x", "controller": True}
        raw["metadata"] |= {"uid": "uid-a", "labels": {"pod-template-hash": "x"}, "ownerReferences": [owner]}
        raw["spec"]["containers"] = [container("100m"), container("200m")]
        raw["spec"]["initContainers"] = [container("1", restartPolicy="Always"), container("500m"), container("50m")]
        target = {"type": "DisruptionTarget", "status": "True", "reason": "Lost", "message": "gone"}
        conditions = [{"type": "PodScheduled", "status": "True", "message": "placed"}, target]
        raw["status"] = {"phase": "Running", "conditions": conditions}
        client.backend.store.create(raw, now=0)
        version = client.backend.store.get("Pod", "default/a").raw["metadata"]["resourceVersion"]
        async with client.watch("/ui/watch/pods", **OURS) as pods:
            seen = (await pods.next())["object"]
        async with client.watch("/ui/watch/nodes", **OURS) as nodes:
            offers = (await nodes.next())["object"]["status"]["allocatable"]

        assert seen.pop("created")
        assert seen.pop("version") == version
        requests = {"cpu": 1_500}
        expected = {"name": "default/a", "workload": "Deployment default/web", "node": "n1", "phase": "Running"}
        assert seen == {"key": "uid-a", "requests": requests, **expected, "disruption": "Lost", "why": "gone"}
        assert offers["cpu"] == 10_000

    with_page(check, node("n1"))


def test_with_roles_the_page_answers_those_that_may_ask_at_its_paths() -> None:
    rules = {"nonResourceURLs": ["/ui/about"], "verbs": ["get"]}
    backend = LocalBackend(role("looker", rules), bound("looker", "anna"))
    anna = {**OURS, "Impersonate-User": "anna"}

    async def check(client: Client) -> None:
        assert (await client.ask("GET", "/ui/", headers=anna))[0] == 200
        assert (await client.ask("GET", "/ui/about", headers=anna))[0] == 200
        reads = [("GET", f"/ui/{name}") for name in ("now", "object", "watch/nodes", "watch/pods")]
        for method, path in (*reads, ("POST", "/ui/ask"), ("POST", "/ui/read")):
            code, status = await client.ask(method, path, ASKED if method == "POST" else None, headers=anna)
            verb = "create" if method == "POST" else "get"
            assert (code, status["message"]) == (403, f'forbidden: User "anna" cannot {verb} path "{path}"')
        assert (await client.ask("GET", "/ui/now", headers=OURS))[0] == 200

    settings = ServerSettings(authorizer=Authorizer(backend.store))
    with_page(check, backend=backend, settings=settings)


def test_a_page_of_another_origin_is_rejected() -> None:
    async def check(client: Client) -> None:
        for headers in (
            {},
            {**OURS, "Origin": "http://evil.example.com"},
            {**OURS, "Origin": "null"},
            {**OURS, "Sec-Fetch-Site": "cross-site"},
            {**OURS, "Sec-Fetch-Site": "same-site"},
            {**OURS, "Host": "podium.evil.example.com"},
        ):
            for method, path in (("GET", "/ui/about"), ("POST", "/ui/ask"), ("POST", "/ui/read")):
                code, answer = await client.ask(method, path, ASKED if method == "POST" else None, headers=headers)
                assert code == 403, (headers, path, answer)

    with_page(check)


def test_the_page_receives_the_forms_of_all_questions() -> None:
    async def check(client: Client) -> None:
        _, about = await client.ask("GET", "/ui/about", headers=OURS)
        assert about["mode"] == "control-plane"
        assert [form["name"] for form in about["plans"]] == [form.name for form in PLANS]

    with_page(check)


def test_a_question_is_answered_about_the_cluster_as_it_is() -> None:
    async def check(client: Client) -> None:
        lines = await reported(client, "explain", target="a")
        assert all("progress" in line for line in lines[:-1])
        assert lines[-1]["answer"]["picture"]["decision"]["fits"]

        client.backend.store.delete("Node", "n1", now=0)
        assert not (await reported(client, "explain", target="a"))[-1]["answer"]["picture"]["decision"]["nodes"]
        assert (await reported(client, "explain", target="b"))[-1] == {
            "error": "pod default/b is not in the input; pending there: default/a"
        }

    with_page(check, node("n1"), pod("a"))


def test_a_question_loads_no_code_that_the_command_line_did_not_name() -> None:
    profile = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: 'this:Zen'}]
"""

    async def check(client: Client) -> None:
        lines = await reported(client, "diff", after=profile)
        assert "was not loaded at the start" in lines[-1]["error"], lines[-1]

    with_page(check, node("n1"), pod("a"))


def test_a_malformed_page_request_is_reported() -> None:
    async def check(client: Client) -> None:
        for body, problem in (
            (b"[", "no valid JSON"),
            (b"[]", "a question is"),
            (b"[" * 100_000, "JSON"),
            (b'{"question": "\xff"}', "JSON"),
            ({"question": "drain", "values": []}, "a question is"),
            ({"question": "dig", "values": {}}, "there is no question"),
        ):
            code, answer = await client.ask("POST", "/ui/ask", body, headers=OURS)
            assert (code, answer["reason"]) == (400, "BadRequest"), (body, problem)
        code, _ = await client.ask("POST", "/ui/ask", b"x" * (3 * 1024 * 1024 + 1), headers=OURS)
        assert code == 413

    with_page(check)


def test_an_answer_that_takes_too_long_ends_and_so_does_the_work_at_it() -> None:
    async def check(client: Client) -> None:
        [line] = await reported(client, "explain", target="a")
        assert line == {"error": "the answer takes longer than 0 s; podium plan has no such limit"}

    with_page(check, pod("a"), answering=Answering(seconds=0.0))


def test_more_questions_at_once_than_may_be_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, may_answer = Answering._lines, asyncio.Event()

    async def held(self: Answering, process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
        await may_answer.wait()
        async for line in lines(self, process):
            yield line

    monkeypatch.setattr(Answering, "_lines", held)

    async def check(client: Client) -> None:
        async def ask() -> int:
            return (await client.ask("POST", "/ui/ask", {"question": "explain", "values": {}}, headers=OURS))[0]

        asked = [asyncio.ensure_future(ask()) for _ in range(3)]
        await until(lambda: sum(each.done() for each in asked) == 2)
        may_answer.set()
        assert sorted(await asyncio.gather(*asked)) == [200, 429, 429]

    with_page(check, answering=Answering(at_once=1))


def test_a_question_whose_asker_is_gone_is_worked_at_no_longer() -> None:
    async def check(client: Client) -> None:
        async with client.session.post(
            f"{client.server.address}/ui/ask",
            data=json.dumps({"question": "fail", "values": {"nodes": "n1"}}),
            headers=OURS,
        ) as response:
            assert response.status == 200
            response.close()
        # After all answers have been sent, another client may ask.
        code = 429
        while code == 429:
            code, _ = await client.ask("POST", "/ui/ask", {"question": "explain", "values": {}}, headers=OURS)
        assert code == 200

    with_page(check, node("n1"), answering=Answering(at_once=1))


def test_objects_in_yaml_are_read_one_by_one_with_every_digit() -> None:
    async def check(client: Client) -> None:
        text = (
            b"apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nx: 1234567890123456789\n---\n{kind: Node}"
        )
        code, read = await client.ask("POST", "/ui/read", text, headers=OURS)
        assert code == 200
        first, second = read["documents"]
        assert (first["kind"], first["name"], first["namespace"]) == ("Pod", "a", "b")
        assert "1234567890123456789" in first["json"]
        assert (second["kind"], second["name"]) == ("Node", "")

        for wrong, problem in (
            (b"a: [", "line 2"),
            (b"- a", "not an object"),
            (b"\xff", "UTF-8"),
            (b"a: &a [*a]", "400"),
        ):
            code, answer = await client.ask("POST", "/ui/read", wrong, headers=OURS)
            assert code == 400, answer
            assert problem in answer["message"] or problem == "400"

    with_page(check)


def test_every_form_names_each_of_its_fields_once() -> None:
    for form in FORMS.values():
        names = [field.name for field in form.fields]
        assert len(set(names)) == len(names)


def test_no_process_is_left_when_the_page_ends() -> None:
    async def check(client: Client) -> None:
        await client.ask("GET", "/ui/about", headers=OURS)
        assert len(_children()) > len(before)

    before = _children()
    with_page(check, real=True)
    assert _children() == before


def _children() -> list[str]:
    """Return the processes that this one has started, where the system says."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not path.exists():
        pytest.skip("the system does not say which processes there are")
    return path.read_text().split()


def test_an_answer_whose_process_fails_is_an_error_and_the_next_question_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def check(client: Client) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(answering, "_WORKER", "podium.no.such.module")
            [line] = await reported(client, "explain", target="a")
            assert line["error"].startswith("the answer failed, or exceeded its limits")
        # The process that was started for the next one may have failed as well.
        lines = [(await reported(client, "explain", target="a"))[-1] for _ in range(2)]
        assert "answer" in lines[-1]

    with_page(check, node("n1"), pod("a"))
