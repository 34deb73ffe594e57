"""Numbers beyond 64 bits, wherever they come in."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.serving import PODS, Client, with_server
from tests.store.objects import Raw, node, pod
from tests.store.test_definitions import definition, version

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
PATCHES = "application/merge-patch+json", "application/json-patch+json", "application/strategic-merge-patch+json"


def widget(number: int) -> Raw:
    spec = {"size": 3, "anything": {"amount": number}}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**30])
def test_an_integer_beyond_64_bits_is_a_float_in_free_form_and_stays_patchable(number: int) -> None:
    async def check(client: Client) -> None:
        code, created = await client.ask("POST", WIDGETS, widget(number))
        assert (code, created["spec"]["anything"]) == (201, {"amount": float(number)})
        patch = [{"op": "add", "path": "/spec/anything/more", "value": number}]
        headers = {"Content-Type": "application/json-patch+json"}
        code, patched = await client.ask("PATCH", f"{WIDGETS}/a", patch, headers=headers)
        assert (code, patched["spec"]["anything"]) == (200, {"amount": float(number), "more": float(number)})

    with_server(check, definition(version()))


@pytest.mark.parametrize("type_", PATCHES)
@pytest.mark.parametrize("number", [2**63, 2**64, 10**30])
def test_amounts_are_text_however_they_come_in(type_: str, number: int) -> None:
    async def check(client: Client) -> None:
        patch: Any = {"status": {"capacity": {"cpu": number, "memory": 5}}}
        if type_ == "application/json-patch+json":
            patch = [{"op": "add", "path": "/status/capacity", "value": patch["status"]["capacity"]}]
        code, patched = await client.ask("PATCH", "/api/v1/nodes/n/status", patch, headers={"Content-Type": type_})
        capacity = patched["status"]["capacity"]
        assert (code, capacity["cpu"], capacity["memory"]) == (200, "9223372036854775807", "5")

    with_server(check, node("n"))


def test_typed_fields_refuse_them() -> None:
    async def check(client: Client) -> None:
        raw = pod("a")
        raw["spec"]["activeDeadlineSeconds"] = 2**64
        code, answer = await client.ask("POST", PODS, raw)
        assert (code, "is not a whole number of 64 bits" in answer["message"]) == (400, True)

    with_server(check)


def test_a_number_beyond_floats_is_refused() -> None:
    async def check(client: Client) -> None:
        code, answer = await client.ask("POST", WIDGETS, widget(10**400))
        assert (code, answer["message"]) == (400, "the body has a number that is too large")

    with_server(check, definition(version()))
