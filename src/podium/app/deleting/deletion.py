"""The deletion of pods at an API server: eviction within its budgets, and the budgets that refuse it.

Source: kubectl pkg/drain/drain.go (evictPods), for retries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from podium.api import errors, policy, reading, selectors
from podium.api.pod import Pod
from podium.apirequests.request import Request, Response, delete_options_body, eviction_body
from podium.app.console.options import ClusterSource
from podium.app.snapshots.cluster import open_session
from podium.client.session import Session
from podium.store.errors import StoreError

_NOT_FOUND, _CONFLICT, _TOO_MANY = 404, 409, 429
_RETRY_S = 5.0
_LOOK_S = 1.0
# At servers with caps on disruptions, that of kubectl counts.
_COMPONENT = "kubectl"

Outcome = Literal["evicted", "deleted", "gone", "would be evicted", "would be deleted", "blocked", "refused", "going"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionOptions:
    """The options of deletions.

    ``grace_seconds`` None keeps each pod's own period. ``timeout_s`` limits retries of an eviction that budgets refuse,
    and the wait for the pod's end.
    """

    is_direct: bool = False
    is_dry_run: bool = False
    waits: bool = True
    grace_seconds: int | None = None
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Deletion:
    """The outcome of a deletion and its reasons."""

    pod: str
    outcome: Outcome
    reasons: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.outcome not in ("blocked", "refused", "going")


async def delete_pods(
    cluster: ClusterSource, namespace: str | None, names: Iterable[str], options: DeletionOptions
) -> list[Deletion]:
    """Delete or evict pods one by one, so that each eviction counts the previous ones.

    Raises PodiumError if no cluster is named, and NoAnswerError if the server does not respond.
    """
    async with open_session(cluster, "podium-delete") as session:
        space = namespace or session.access.namespace or "default"
        return [await _delete(session, f"{space}/{name}", options) for name in names]


async def _delete(session: Session, key: str, options: DeletionOptions) -> Deletion:
    found = await session.answer(Request(verb="get", kind="Pod", key=key))
    if found.error is not None:
        return Deletion(key, "refused", (found.error.message,))
    try:
        pod = reading.read(found.object or {}, Pod)
    except errors.InputError as error:
        return Deletion(key, "refused", (str(error),))
    until_s = time.monotonic() + options.timeout_s
    deletion = await _ask(session, pod, options, until_s)
    if deletion.outcome in ("evicted", "deleted") and options.waits:
        return await _wait(session, pod, deletion, until_s)
    return deletion


async def _ask(session: Session, pod: Pod, options: DeletionOptions, until_s: float) -> Deletion:
    """Send the request until it succeeds, fails permanently, or times out."""
    body = delete_options_body(pod.metadata.uid, options.grace_seconds)
    if options.is_dry_run:
        body = {**body, "dryRun": ["All"]}
    request = Request(verb="delete", kind="Pod", key=pod.key, body=body, dry_run=options.is_dry_run)
    granted: Outcome = "would be deleted" if options.is_dry_run else "deleted"
    if not options.is_direct:
        eviction = eviction_body(pod.key, body, _COMPONENT)
        request = msgspec.structs.replace(request, verb="create", subresource="eviction", body=eviction)
        granted = "would be evicted" if options.is_dry_run else "evicted"
    while True:
        error = (await session.answer(request)).error
        if error is None:
            return Deletion(pod.key, granted)
        if error.code == _NOT_FOUND or (error.code == _CONFLICT and await _is_gone(session, pod)):
            return Deletion(pod.key, "gone")
        if error.code != _TOO_MANY:
            return Deletion(pod.key, "refused", (error.message,))
        retry_s = error.details.get("retryAfterSeconds")
        wait_s = max(float(retry_s), 0.1) if isinstance(retry_s, int) and retry_s > 0 else _RETRY_S
        if options.is_dry_run or time.monotonic() + wait_s > until_s:
            return Deletion(pod.key, "blocked", await _why(session, pod, error))
        await asyncio.sleep(wait_s)


async def _wait(session: Session, pod: Pod, deletion: Deletion, until_s: float) -> Deletion:
    while not await _is_gone(session, pod):
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            return Deletion(pod.key, "going", ("the server accepted the request, but the pod has not ended yet",))
        await asyncio.sleep(min(_LOOK_S, left_s))
    return deletion


async def _is_gone(session: Session, pod: Pod) -> bool:
    response = await session.answer(Request(verb="get", kind="Pod", key=pod.key))
    if response.error is not None:
        return response.error.code == _NOT_FOUND
    return bool((response.object or {}).get("metadata", {}).get("uid") != pod.metadata.uid)


async def _why(session: Session, pod: Pod, error: StoreError) -> tuple[str, ...]:
    """Return why a pod is not evicted: the server's message, and each budget that covers the pod."""
    listed = await session.answer(Request(verb="list", kind="PodDisruptionBudget", namespace=pod.metadata.namespace))
    causes = error.details.get("causes")
    dicts = [cause for cause in (causes if isinstance(causes, list) else ()) if isinstance(cause, dict)]
    messages = [cause["message"] for cause in dicts if isinstance(cause.get("message"), str)]
    return (error.message, *(text for text in messages if text != error.message), *_budgets(listed, pod))


def _budgets(listed: Response, pod: Pod) -> Iterator[str]:
    if listed.error is not None:
        yield f"its budgets cannot be listed: {listed.error.message}"
        return
    for raw in listed.objects():
        try:
            budget = reading.read(raw, policy.PodDisruptionBudget)
        except errors.InputError:
            continue
        status, spec, rate = budget.status, budget.spec, budget.status.disruption_rate
        if not selectors.compile_label_selector(spec.selector).matches(pod.metadata.labels):
            continue
        asks = f"minAvailable {spec.min_available}"
        if spec.min_available is None:
            asks = f"maxUnavailable {spec.max_unavailable}"
        limit = "" if rate is None else f"; its rate {rate.max} leaves {rate.available}"
        if rate is not None and rate.last_disruptions:
            limit += f" ({'; '.join(rate.last_disruptions)})"
        healthy = f"{status.current_healthy} of {status.expected_pods} pods are healthy"
        yield (
            f"budget {budget.key} ({asks}) allows {status.disruptions_allowed} disruptions: {healthy}, and it needs "
            f"{status.desired_healthy}{limit}"
        )
