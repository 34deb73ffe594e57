"""Admission of requests by the policies and webhooks in a store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from podium.api.meta import Raw
from podium.apirequests.admission.matching import CONFIGURING, Attributes, Matcher, is_exempt
from podium.apirequests.admission.policies import Policies
from podium.apirequests.admission.webhooks import Webhooks
from podium.apirequests.context import Context
from podium.apirequests.request import Request, Response
from podium.store.api_resource import APIResource
from podium.store.store import Store

_OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}


class AdmissionControl:
    """Mutating policies and webhooks before a write is checked, and validating ones before it is committed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        matcher = Matcher(store)
        self._policies = Policies(store, matcher)
        self.webhooks = Webhooks(store, matcher)

    def concerns(self, request: Request) -> bool:
        """Return whether policies or webhooks may be asked about a request."""
        if request.verb not in _OPERATIONS or request.subresource not in ("", "status"):
            return False
        return self._store.has_any(CONFIGURING)

    def answer(self, context: Context, request: Request, handle: Callable[[], Response]) -> Response:
        """Answer a request by `handle`, as far as it is admitted. Call it in a transaction.

        Raises StoreError for a request that is denied, and CallNeededError for one that needs the answer of a webhook.
        """
        resource = self._store.resources.named(request.kind)
        if is_exempt(resource):
            return handle()
        warnings: list[str] = []
        previous = self._store.find(request.kind, request.key) if request.key else None
        old = None if previous is None else previous.raw
        seen = Attributes(
            operation="UPDATE" if old is not None else "CREATE",
            resource=resource,
            api_version=request.api_version or resource.api_version,
            subresource=request.subresource,
            old=old,
            user=request.user,
            dry_run=request.dry_run,
        )
        if request.verb == "delete":
            self._validate(replace(seen, operation="DELETE"), warnings)
            return _warned(handle(), warnings)

        def admit(raw: Raw) -> Raw:
            return self._mutated(context, resource, replace(seen, object=raw), warnings)

        with self._store.admitted_by(admit):
            response = handle()
        if response.stored is not None:
            self._validate(replace(seen, object=_unversioned(response.stored.raw, old)), warnings)
        return _warned(response, warnings)

    def _mutated(self, context: Context, resource: APIResource, seen: Attributes, warnings: list[str]) -> Raw:
        raw = seen.object or {}
        for mutate in (self._policies.mutated, lambda each: self.webhooks.mutated(each, warnings)):
            changed = mutate(replace(seen, object=raw))
            if changed is not None:
                raw = changed if resource.is_custom else context.completed(resource, changed)
        return raw

    def _validate(self, seen: Attributes, warnings: list[str]) -> None:
        self._policies.validate(seen, warnings)
        self.webhooks.validate(seen, warnings)


def _unversioned(raw: Raw, old: Raw | None) -> Raw:
    """Return an object that was written as it was before: with the version of the old one."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
    if old is not None:
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    return {**raw, "metadata": metadata}


def _warned(response: Response, warnings: list[str]) -> Response:
    return msgspec.structs.replace(response, warnings=(*response.warnings, *warnings)) if warnings else response
