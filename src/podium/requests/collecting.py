"""The requests of the garbage collector and the namespace controller.

Source: pkg/controller/garbagecollector (operations.go), pkg/controller/namespace/deletion.
"""

from __future__ import annotations

from podium.requests.conversation import Ask
from podium.requests.options import delete_options_body
from podium.requests.request import Request
from podium.store.controllers.steps import CarryOut, Collect, Rewrite, Step


def by_requests(ask: Ask) -> CarryOut:
    """Carries out the steps by what they ask for."""

    def carry_out(step: Step, now: int) -> None:
        error = ask(request_of(step), now).error
        if error is not None:
            raise error

    return carry_out


def request_of(step: Step) -> Request:
    """The request that a step is."""
    stored = step.stored
    if isinstance(step, Collect):
        body = delete_options_body(stored.uid, propagation=step.propagation)
        return Request(verb="delete", kind=stored.kind, key=stored.key, body=body)
    if isinstance(step, Rewrite):
        metadata = {"uid": stored.uid, "resourceVersion": str(stored.version), step.field: step.value}
        return Request(verb="patch", kind=stored.kind, key=stored.key, body={"metadata": metadata})
    spec = {**stored.raw.get("spec", {}), "finalizers": step.finalizers}
    body = {**stored.raw, "spec": spec}
    return Request(verb="update", kind=stored.kind, key=stored.key, subresource="finalize", body=body)
