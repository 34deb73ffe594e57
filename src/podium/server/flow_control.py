"""The classification of requests by FlowSchemas. All requests are limited alike, whatever their priority level.

Source: apiserver (pkg/util/flowcontrol: apf_controller.go, rule.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.api.meta import Raw, objects_at, value_at
from podium.apirequests.authorization import ACCOUNT, Attributes, User, covers, lists
from podium.store.listing import ReadableStore

_FLOW, _LEVEL = "FlowSchema", "PriorityLevelConfiguration"
_HEADER = "X-Kubernetes-PF-{}-UID"
_MOST_KNOWN = 1_000


class FlowControl:
    """The FlowSchemas and priority levels in a store."""

    def __init__(self, store: ReadableStore) -> None:
        self._store = store
        self._seen: tuple[int, ...] = ()
        # The rules of each FlowSchema and its response headers, by precedence.
        self._flows: list[tuple[list[Raw], dict[str, str]]] = []
        # The headers of requests that were classified, by user, groups and attributes.
        self._known: dict[tuple[str, tuple[str, ...], Attributes], dict[str, str]] = {}

    def headers(self, user: User, attributes: Attributes) -> Mapping[str, str]:
        """Return the response headers with the uids of the FlowSchema and the priority level of a request."""
        seen = self._store.changes(_FLOW), self._store.changes(_LEVEL)
        if seen != self._seen or len(self._known) >= _MOST_KNOWN:
            self._seen, self._flows, self._known = seen, list(self._by_precedence()), {}
        request = user.name, user.groups, attributes._replace(name="")
        if request not in self._known:
            found = (headers for rules, headers in self._flows if any(_matches(rule, *request) for rule in rules))
            self._known[request] = next(found, {})
        return self._known[request]

    def _by_precedence(self) -> Iterator[tuple[list[Raw], dict[str, str]]]:
        flows = self._store.objects(_FLOW)
        for flow in sorted(flows, key=lambda flow: (value_at(flow.raw, "spec", "matchingPrecedence") or 0, flow.key)):
            level = self._store.find(_LEVEL, str(value_at(flow.raw, "spec", "priorityLevelConfiguration", "name")))
            if level is not None:
                headers = {_HEADER.format("FlowSchema"): flow.uid, _HEADER.format("PriorityLevel"): level.uid}
                yield objects_at(flow.raw, "spec", "rules"), headers


def _matches(rule: Raw, user: str, groups: tuple[str, ...], attributes: Attributes) -> bool:
    """Return whether a rule of a FlowSchema matches a request."""
    if not any(_is_subject(subject, user, groups) for subject in objects_at(rule, "subjects")):
        return False
    if attributes.path:
        return any(covers(one, attributes) for one in objects_at(rule, "nonResourceRules"))
    namespace = attributes.namespace
    return any(
        covers(one, attributes) and (lists(one, "namespaces", namespace) if namespace else one.get("clusterScope"))
        for one in objects_at(rule, "resourceRules")
    )


def _is_subject(subject: Raw, user: str, groups: tuple[str, ...]) -> bool:
    match subject:
        case {"kind": "Group", "group": {"name": name}}:
            return name == "*" or name in groups
        case {"kind": "User", "user": {"name": name}}:
            return name in ("*", user)
        case {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}:
            account = f"{ACCOUNT}{namespace}:"
            return user.startswith(account) if name == "*" else user == f"{account}{name}"
    return False
