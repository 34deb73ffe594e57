"""Deletion (grace periods, propagation to dependents), and evictions, which debit a pod's disruption budgets.

The rules of apiserver's registry/rest/delete.go and registry/generic/registry/store.go, and of pkg/registry/core/pod
(strategy.go CheckGracefulDelete, storage/eviction.go). Upstream checks a budget, writes it, and then deletes the pod;
here one transaction does all three, so that no debit is lost and the caller sees no conflict.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from podium.api import disruption_policy, errors, selectors
from podium.api.avoid_list import EVICTED, PREFER_AVOID_PODS, EvictionHints, avoid_list, hints_to_record
from podium.api.budget_limits import full_ns, last_disruptions, rate_of, rate_status_after
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.times import MAX_TIME_NS, SECOND, format_duration, format_time, parse_time
from podium.store.admission.defaults import with_name_label
from podium.store.admission.priorities import current_policy
from podium.store.api_resources import POD
from podium.store.errors import StoreError, conflict, forbidden, invalid_options, not_found, too_many_requests
from podium.store.revisions import Revisions
from podium.store.stored import Stored, reread, with_conditions

Propagation = Literal["", "Background", "Foreground", "Orphan"]
"""The deletion propagation: dependents are deleted after the owner, before it, or not at all.

"" is Orphan for ReplicationControllers and Jobs, and Background for all others, unless the object already has the
finalizer of another propagation."""

FOREGROUND = "foregroundDeletion"
"""The finalizer of an object that is removed after its dependents."""

ORPHAN = "orphan"
"""The finalizer of an object that orphans its dependents."""

# Source: DefaultGarbageCollectionPolicy of the strategies in pkg/registry.
_ORPHANING = frozenset(("Job", "ReplicationController"))
_FINALIZER_OF = {"Background": "", "Foreground": FOREGROUND, "Orphan": ORPHAN}
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

NAMESPACE_FINALIZER = "kubernetes"
"""The entry in a namespace's `spec.finalizers` until it is empty."""


def check_preconditions(stored: Stored, uid: str, resource_version: str) -> None:
    """Raise StoreError 409 if the object does not have that uid and version; "" matches any."""
    if uid and uid != stored.uid:
        problem = f"has uid {stored.uid}, not {uid}; it was deleted and created again"
        message = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
        raise conflict(stored.resource, stored.key, problem, message)
    if resource_version and resource_version != str(stored.version):
        problem = f"is at version {stored.version}, not {resource_version}; read it again"
        raise conflict(stored.resource, stored.key, problem, _MODIFIED)


def preconditions_of(metadata: Raw) -> tuple[str, str]:
    """Return the uid and version that an object to be written requires; "" for any, as version 0 means."""
    version = str(metadata.get("resourceVersion") or "")
    return str(metadata.get("uid") or ""), "" if version == "0" else version


def deletion_metadata(object_: Kubernetes, metadata: Raw, grace_seconds: int | None, now: int) -> Raw:
    """Return the metadata after a delete request; `metadata` itself if the request changes nothing.

    `grace_seconds` None requests the object's own grace period. A later request can only shorten the period. The first
    one counts as a change of the desired state.
    """
    meta = object_.metadata
    current = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is None:
        grace = 0
        if isinstance(object_, Pod) and object_.spec.node_name and not object_.is_terminal:
            own = object_.spec.termination_grace_period_seconds
            grace = _not_negative(own if grace_seconds is None else grace_seconds)
        raised = {"generation": meta.generation + 1} if meta.generation else {}
        return _deleted(metadata | raised, now, grace)
    if not current or grace_seconds is None or is_pending(object_, grace_seconds):
        return metadata
    since = parse_time(meta.deletion_timestamp) - current * SECOND
    return _deleted(metadata, since, _not_negative(grace_seconds))


def is_pending(object_: Kubernetes, grace_seconds: int | None) -> bool:
    """Return whether the object waits for the end of a grace period that a delete request does not shorten."""
    current = object_.metadata.deletion_grace_period_seconds or 0
    return current > 0 and (grace_seconds is None or _not_negative(grace_seconds) >= current)


def with_propagation(metadata: Raw, propagation: str, kind: str) -> Raw:
    """Return the metadata with the finalizer of this propagation alone; "" is the default of the kind.

    Raises StoreError 422 for an unknown propagation.
    """
    if not propagation and kind in _ORPHANING and FOREGROUND not in metadata.get("finalizers", ()):
        propagation = "Orphan"
    if not propagation or kind == "Event":
        return metadata
    if propagation not in _FINALIZER_OF:
        problem = f"{errors.shown(propagation)} is not one of {', '.join(_FINALIZER_OF)}"
        raise invalid_options("DeleteOptions", "propagationPolicy", problem, "FieldValueNotSupported")
    wanted = _FINALIZER_OF[propagation]
    before = metadata.get("finalizers", [])
    after = [one for one in before if one == wanted or one not in (FOREGROUND, ORPHAN)]
    if wanted and wanted not in after:
        after.append(wanted)
    return metadata if after == before else {**metadata, "finalizers": after}


def is_due(metadata: Raw) -> bool:
    """Return whether an object with this metadata is due for removal: deleted, no grace left, and no finalizers."""
    is_held = metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers")
    return "deletionTimestamp" in metadata and not is_held


def _not_negative(grace_seconds: int) -> int:
    """Return the grace period; the API server treats a negative one as one second."""
    return grace_seconds if grace_seconds >= 0 else 1


def _deleted(metadata: Raw, since: int, grace: int) -> Raw:
    # A period beyond the maximum time is cut to the second after that time.
    grace = min(grace, (MAX_TIME_NS - since) // SECOND + 1)
    return {**metadata, "deletionTimestamp": format_time(since + grace * SECOND), "deletionGracePeriodSeconds": grace}


def as_new_namespace(raw: Raw) -> Raw:
    """Return a new namespace: active, with the finalizer, and labelled with its name.

    Malformed input raises nothing here; validation reports it.
    """
    raw = with_name_label(raw)
    spec = raw.get("spec", {})
    if not isinstance(spec, dict):
        return raw
    finalizers = spec.get("finalizers")
    kept = finalizers if isinstance(finalizers, list) else []
    return {
        **raw,
        "spec": {**spec, "finalizers": kept if NAMESPACE_FINALIZER in kept else [*kept, NAMESPACE_FINALIZER]},
        "status": {"phase": "Active"},
    }


def default_service_account(namespace: str) -> Raw:
    """Return the namespace's default ServiceAccount, which pods without an account use."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}


def as_terminating_namespace(raw: Raw, *, is_empty: bool) -> Raw:
    """Return a deleted namespace; a namespace with contents keeps its finalizer."""
    spec, status = raw.get("spec", {}), raw.get("status", {})
    others = [finalizer for finalizer in spec.get("finalizers", []) if finalizer != NAMESPACE_FINALIZER]
    finalizers = others if is_empty else [*others, NAMESPACE_FINALIZER]
    return {**raw, "spec": {**spec, "finalizers": finalizers}, "status": {**status, "phase": "Terminating"}}


MAX_DISRUPTED_PODS = 2_000
"""The maximum number of accepted disruptions per budget that the disruption controller has not processed yet."""

BUDGET_CAUSE, RATE_CAUSE, CAP_CAUSE = "DisruptionBudget", "DisruptionRate", "DisruptionCap"
"""The cause reasons of a 429 response: the kind of limit that is exhausted."""

_PROCESSING_SECONDS = 10


def is_protected(pod: Pod) -> bool:
    """Return whether budgets apply to the pod: it has started, and is neither ended nor terminating."""
    return pod.status.phase != "Pending" and not pod.is_terminal and not pod.is_terminating


def needs_no_debit(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether the unhealthy pod can be evicted without a debit (unhealthyPodEvictionPolicy).

    The number of healthy pods is taken from the status only if the disruption controller could compute it, and for the
    current generation of the budget.
    """
    if pod.is_ready:
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    status = budget.status
    allowed = status.condition("DisruptionAllowed")
    is_computed = _is_observed(budget) and (allowed is None or allowed.reason != "SyncFailed")
    return is_computed and status.current_healthy >= status.desired_healthy > 0


def check_allowed(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int, *, by_condition: bool) -> None:
    """Raise StoreError if a budget allows no disruption of the pod: 429, or 403 for a status out of bounds.

    With ``by_condition`` the cause says why, as far as the budget's condition does; else the numbers of healthy pods.
    """
    status, name = budget.status, budget.metadata.name
    if not _is_observed(budget):
        problem = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(POD, pod.key, problem, BUDGET_CAUSE, _PROCESSING_SECONDS)
    if status.disruptions_allowed < 0:
        raise forbidden(stored.resource, stored.key, "status.disruptionsAllowed is negative")
    if len(status.disrupted_pods) > MAX_DISRUPTED_PODS:
        problem = f"status.disruptedPods has {len(status.disrupted_pods)} entries that the controller has yet to see"
        raise forbidden(stored.resource, stored.key, problem)
    if not status.disruptions_allowed:
        raise too_many_requests(POD, pod.key, _cause(budget, by_condition=by_condition), BUDGET_CAUSE)
    rate = rate_of(budget)
    next_ns = now if rate is None else rate.next_ns(full_ns(budget, rate), now)
    if next_ns > now:
        used = f" ({'; '.join(last)})" if (last := last_disruptions(budget)) else ""
        problem = (
            f"the disruption budget {name} allows {rate} disruptions, and they are used up{used}; {when(next_ns, now)}"
        )
        raise too_many_requests(POD, pod.key, problem, RATE_CAUSE, seconds_until(next_ns, now))


def _cause(budget: PodDisruptionBudget, *, by_condition: bool) -> str:
    status = budget.status
    allows_none = f"The disruption budget {budget.metadata.name} does not allow evicting pods currently"
    condition = status.condition("DisruptionAllowed") if by_condition else None
    is_explained = condition is not None and condition.status == "False" and condition.message
    if condition is not None and is_explained and condition.reason == "SyncFailed":
        return f"{allows_none} because it failed sync: {condition.message}"
    if not by_condition or status.current_healthy <= status.desired_healthy:
        wanted, found = status.desired_healthy, status.current_healthy
        return f"The disruption budget {budget.metadata.name} needs {wanted} healthy pods and has {found} currently"
    if condition is not None and is_explained:
        return f"{allows_none} ({condition.reason}): {condition.message}"
    return allows_none


def debited(stored: Stored, budget: PodDisruptionBudget, pod: Pod, now: int) -> Raw:
    """Return the budget's status after an accepted disruption of the pod."""
    status = {**stored.raw["status"], "disruptionsAllowed": budget.status.disruptions_allowed - 1}
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod.metadata.name: format_time(now)}
    if (rate := rate_status_after(budget, now, f"pod {pod.metadata.name} was evicted")) is not None:
        status["disruptionRate"] = rate
    if not status["disruptionsAllowed"]:
        exhausted = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": budget.status.observed_generation,
        }
        status["conditions"] = with_conditions(status.get("conditions", ()), (exhausted,), now)
    return status


def with_disruption_target(raw: Raw, pod: Pod, now: int) -> Raw:
    """Return the pod with the DisruptionTarget condition; a terminating pod keeps its reason."""
    target = pod.status.condition("DisruptionTarget")
    if pod.is_terminating and target is not None and target.status == "True":
        return raw
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": EVICTED,
        "message": "Eviction API: evicting",
        "observedGeneration": pod.metadata.generation,
    }
    status = raw["status"]
    return {**raw, "status": {**status, "conditions": with_conditions(status.get("conditions", ()), (condition,), now)}}


def seconds_until(time_ns: int, now: int) -> int:
    """Return the whole seconds to wait."""
    return -(-(time_ns - now) // SECOND)


def when(next_ns: int, now: int) -> str:
    """Return the text for the time of the next allowed disruption."""
    wait = format_duration(seconds_until(next_ns, now) * SECOND)
    return f"the next is allowed at {format_time(now + seconds_until(next_ns, now) * SECOND)}, in {wait}"


def _is_observed(budget: PodDisruptionBudget) -> bool:
    return budget.status.observed_generation >= budget.metadata.generation


class DisruptionAccounting(Struct, frozen=True):
    """The budgets, the policy and the avoid lists among the objects; ``by_condition`` as for `check_allowed`."""

    revisions: Revisions
    by_condition: bool

    def grant(self, pod: Pod, component: str, now: int) -> None:
        """Debit the budgets and the cap for the eviction of a pod by a component.

        Raises StoreError if a budget, its rate or the component's cap does not allow it, and 500 for a pod with several
        budgets if the policy refuses those.
        """
        if not is_protected(pod):
            return
        budgets = self._covering(pod)
        if len(budgets) > 1 and current_policy(self.revisions)[1].spec.several_budgets == "Refuse":
            names = ", ".join(budget.metadata.name for _, budget in budgets)
            problem = f"This pod has more than one PodDisruptionBudget ({names}), and is not evicted; "
            how = "leave it one, or set severalBudgets: RequireAll in the DisruptionPolicy"
            raise StoreError(500, "", problem + how)
        to_debit = [(stored, budget) for stored, budget in budgets if not needs_no_debit(pod, budget)]
        for stored, budget in to_debit:
            check_allowed(stored, budget, pod, now, by_condition=self.by_condition)
        if to_debit:
            self._check_cap(pod, component, now)
            self._take_cap(pod, component, now)
        for stored, budget in to_debit:
            self._write(stored, "status", debited(stored, budget, pod, now))

    def count(self, pod: Pod, now: int) -> None:
        """Take the tokens that the deletion of a pod uses, if any are left; nothing is refused."""
        if not is_protected(pod) or not pod.is_ready:
            return
        budgets = self._covering(pod)
        target = pod.status.condition("DisruptionTarget")
        is_preempted = target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
        disruption = f"pod {pod.metadata.name} was {'preempted' if is_preempted else 'deleted'}"
        for stored, budget in budgets:
            rate = rate_of(budget)
            if rate is not None and rate.tokens(full_ns(budget, rate), now) > 0:
                status: Raw = stored.raw.get("status", {})
                status = {**status, "disruptionRate": rate_status_after(budget, now, disruption)}
                self._write(stored, "status", status)
        if budgets and is_preempted:
            self._take_cap(pod, disruption_policy.SCHEDULER, now)

    def record_hints(self, pod: Pod, component: str, hints: EvictionHints, grace_seconds: int | None, now: int) -> None:
        """Record the pod's eviction hints on its node.

        Raises StoreError 404 if the hints refer to a pod that does not exist: the one that the avoidance waits for, or
        the one to be replaced if its uid is not given.
        """
        until = hints.until_scheduled
        wanted = self.revisions.of("Pod").get(until)
        if until and wanted is None:
            raise not_found(POD, until)
        awaited = wanted.object if wanted is not None and isinstance(wanted.object, Pod) else None
        replaced = hints.until_replaced
        if replaced is not None and not replaced.uid:
            found = self.revisions.of("Pod").get(replaced.key)
            if found is None:
                raise not_found(POD, replaced.key)
            hints = hints.with_replaced_uid(found.uid)
        left = hints_to_record(pod, hints, awaited, component, grace_seconds, now)
        node = self.revisions.of("Node").get(pod.spec.node_name)
        if node is None or not left:
            return
        annotations = node.object.metadata.annotations
        before = avoid_list(annotations.get(PREFER_AVOID_PODS, ""))
        text = left.added_to(before, current_policy(self.revisions)[1].spec.avoid_lists, now).written()
        if text == annotations.get(PREFER_AVOID_PODS):
            return
        self._write(node, "metadata", {**node.raw["metadata"], "annotations": {**annotations, PREFER_AVOID_PODS: text}})

    def _covering(self, pod: Pod) -> list[tuple[Stored, PodDisruptionBudget]]:
        """Return the budgets that cover the pod, by key.

        The empty selector selects the whole namespace; a missing selector selects nothing.
        """
        labels = pod.metadata.labels
        return [
            (stored, stored.object)
            for stored in self.revisions.in_namespace("PodDisruptionBudget", pod.metadata.namespace)
            if isinstance(stored.object, PodDisruptionBudget)
            and (selector := stored.object.spec.selector) is not None
            # Most selectors are compiled for nothing if their labels are not compared first.
            and selector.match_labels.items() <= labels.items()
            and selectors.compile_label_selector(selector).matches(labels)
        ]

    def _check_cap(self, pod: Pod, component: str, now: int) -> None:
        exhausted = current_policy(self.revisions)[1].exhausted_cap(component, pod.metadata.namespace, now)
        if exhausted is not None:
            bucket, rate, next_ns = exhausted
            subject = f"{bucket.component} may" if bucket.component else "all components together may"
            where = f" in namespace {bucket.namespace}" if bucket.namespace else ""
            done = "has done so" if bucket.component else "have done so"
            problem = f"{subject} disrupt {rate} pods with a budget{where}, and {done}; {when(next_ns, now)}"
            raise too_many_requests(POD, pod.key, problem, CAP_CAUSE, seconds_until(next_ns, now))

    def _take_cap(self, pod: Pod, component: str, now: int) -> None:
        """Take a token of each cap on the component that has one left."""
        stored, policy = current_policy(self.revisions)
        status = policy.status_after(component, pod.metadata.namespace, now)
        if stored is not None and status is not None:
            self._write(stored, "status", status)

    def _write(self, stored: Stored, section: str, value: Raw) -> None:
        raw = {**stored.raw, section: value}
        self.revisions.write(stored.resource, stored, raw, reread(stored.object, stored.raw, raw), is_gone=False)
