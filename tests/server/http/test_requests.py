"""Objects over HTTP: the router's answers, in the requested format."""

from __future__ import annotations

from tests.server.serving import PODS, Client, with_server
from tests.store.objects import node, pod


def test_objects_are_created_read_changed_and_deleted() -> None:
    async def check(client: Client) -> None:
        code, made = await client.ask("POST", PODS, pod("a"))
        assert (code, made["metadata"]["name"]) == (201, "a")
        code, read = await client.ask("GET", f"{PODS}/a")
        assert (code, read) == (200, made)
        code, listed = await client.ask("GET", PODS)
        assert (code, listed["kind"], listed["items"]) == (200, "PodList", [made])
        patch = {"metadata": {"labels": {"of": "mine"}}}
        headers = {"Content-Type": "application/merge-patch+json"}
        code, patched = await client.ask("PATCH", f"{PODS}/a", patch, headers=headers)
        assert (code, patched["metadata"]["labels"]) == (200, {"of": "mine"})
        code, replaced = await client.ask("PUT", f"{PODS}/a", {**made, "metadata": {"name": "a"}})
        assert (code, replaced["metadata"].get("labels")) == (200, None)
        code, _ = await client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
        assert code == 200
        assert (await client.ask("GET", f"{PODS}/a"))[0] == 404

    with_server(check, node("n1"))


def test_quantities_are_stored_as_text() -> None:
    async def check(client: Client) -> None:
        _, made = await client.ask("POST", PODS, pod("a", cpu=1))
        assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
        patch = {"status": {"capacity": {"cpu": 0.5}}}
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        _, patched = await client.ask("PATCH", "/api/v1/nodes/n1/status", patch, headers=headers)
        assert patched["status"]["capacity"] == {"cpu": "500m"}

    with_server(check, node("n1"))


def test_a_deletion_without_a_body_has_no_type() -> None:
    async def check(client: Client) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}, headers=headers))[0] == 415
        assert (await client.ask("DELETE", f"{PODS}/a", headers=headers))[0] == 200

    with_server(check, pod("a"))
