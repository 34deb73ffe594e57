"""Evictions at API servers that know nothing of avoid lists: whoever evicts writes by itself what the eviction leaves.

The node is written before the pod is evicted, since its controller may create the replacement, and a scheduler place
it, at the same instant. An eviction that would be refused is asked for as a dry run first, so that nodes are not
written in vain; where it is refused all the same, what was written is taken off again. Should whoever evicts fail in
between, or nobody know what became of the eviction, it stays until its time is over: a node is avoided in vain.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from podium.api.avoid_list import PREFER_AVOID_PODS, AvoidList, avoid_list
from podium.api.disruption_policy import POLICY_NAME, AvoidLists, DisruptionPolicy
from podium.api.errors import InputError
from podium.api.left_behind import LeftBehind, Wishes, left_behind
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.reading import read
from podium.machines.actions import Evict
from podium.requests.conversation import Conversation
from podium.requests.options import delete_options_body, eviction_body
from podium.requests.request import Request, Response
from podium.store.errors import StoreError

_TRIES = 5
# After these the eviction may have been carried out, or not.
_UNKNOWN = frozenset((502, 504))


def evict_at_foreign_server(action: Evict, now: int) -> Conversation:
    """Write to the pod's node what its eviction leaves there, and evict it."""
    plain = _eviction(action)
    if not action.wishes:
        yield plain
        return None
    pod = yield from _find(action)
    awaited = yield from _awaited(action)
    wishes = yield from _wishes(action)
    left = left_behind(pod, wishes, awaited, action.component, action.grace_seconds, now)
    if not left or not pod.spec.node_name:
        yield plain
        return None
    limits = yield from _limits()
    yield _eviction(action, is_dry_run=True)
    before = yield from _change(pod.spec.node_name, lambda present: left.added_to(present, limits, now))
    if before is None:
        yield plain
        return None
    try:
        yield plain
    except StoreError as error:
        if error.code not in _UNKNOWN:
            yield from _take_off(pod.spec.node_name, left, before, left.added_to(before, limits, now))
        raise
    return None


def _take_off(name: str, left: LeftBehind, before: AvoidList, after: AvoidList) -> Generator[Request, Response, None]:
    """Take off what was written for an eviction that was refused; what that has displaced is back."""
    try:
        yield from _change(name, lambda present: before if present == after else left.taken_off(present, before))
    except StoreError:
        # It goes with its time; what matters is why the eviction was refused.
        return


def _change(name: str, changed: Callable[[AvoidList], AvoidList]) -> Generator[Request, Response, AvoidList | None]:
    """Change the list of a node, as it is at the time; returns what it was, None where there is no such node.

    Where somebody else has written the node meanwhile it is read again, some times.
    """
    for number in range(_TRIES):
        try:
            found = yield Request(verb="get", kind="Node", key=name)
        except StoreError as error:
            if error.code == 404:
                return None
            raise
        metadata: Raw = (found.object or {})["metadata"]
        text = (metadata.get("annotations") or {}).get(PREFER_AVOID_PODS, "")
        before = avoid_list(text)
        after = changed(before)
        if after == before:
            return before
        about = {field: metadata[field] for field in ("uid", "resourceVersion")}
        annotations = {PREFER_AVOID_PODS: after.written() if after else None}
        try:
            yield Request(verb="patch", kind="Node", key=name, body={"metadata": {**about, "annotations": annotations}})
        except StoreError as error:
            if error.code != 409 or number == _TRIES - 1:
                raise
        else:
            return before
    raise AssertionError("the last try either succeeds or fails")


def _find(action: Evict) -> Generator[Request, Response, Pod]:
    """The pod that is to be evicted. Raises StoreError 409 where it is another one by now."""
    pod = _pod((yield Request(verb="get", kind="Pod", key=action.pod)))
    if pod.metadata.uid != action.uid:
        raise StoreError(409, "Conflict", f"Pod {action.pod}: has uid {pod.metadata.uid}, not {action.uid}")
    return pod


def _awaited(action: Evict) -> Generator[Request, Response, Pod | None]:
    """The pod that is to have the room, None where there is none."""
    key = action.avoid_for.until_scheduled
    return _pod((yield Request(verb="get", kind="Pod", key=key))) if key else None


def _wishes(action: Evict) -> Generator[Request, Response, Wishes]:
    """What is to be left; a pod whose replacement is waited for is looked up where its uid is not told."""
    replaced = action.avoid_for.until_replaced
    if replaced is None or replaced.uid:
        return action.wishes
    found = _pod((yield Request(verb="get", kind="Pod", key=replaced.key)))
    return action.wishes.until_replaced(found.metadata.uid)


def _limits() -> Generator[Request, Response, AvoidLists]:
    """How long lists may be: as the DisruptionPolicy says, where there is one that may be seen."""
    try:
        found = yield Request(verb="get", kind="DisruptionPolicy", key=POLICY_NAME)
        return read(found.object or {}, DisruptionPolicy).spec.avoid_lists
    except StoreError as error:
        if error.code not in (403, 404):
            raise
    except InputError:
        # Whoever checks policies says so.
        pass
    return AvoidLists()


def _eviction(action: Evict, *, is_dry_run: bool = False) -> Request:
    """The eviction, without what only Podium's own server reads."""
    body = eviction_body(action.pod, delete_options_body(action.uid, action.grace_seconds))
    # The request says that it is one, and not its body: webhooks that judge evictions are to know it, too.
    return Request(verb="create", kind="Pod", key=action.pod, subresource="eviction", body=body, dry_run=is_dry_run)


def _pod(response: Response) -> Pod:
    return read(response.object or {}, Pod)
