"""A PodDisruptionBudget, its pods, their controllers' scales, and the status that follows from them.

Source: pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from collections import Counter

from podium.api import disruption_policy, kinds, selectors
from podium.api.budget_limits import bound_rate, bounded_desired, pods_of_share, rate_recheck_ns, rate_status
from podium.api.meta import Kubernetes, OwnerReference, Raw
from podium.api.pod import Pod, deletion_ns
from podium.api.policy import PodDisruptionBudget
from podium.api.times import parse_time, time_of
from podium.api.workloads import ReplicaSet, Replicated
from podium.controllers import actions, deadlines, indexes
from podium.store.stored import condition_of, with_conditions

DELETION_TIMEOUT_NS = 120 * 10**9
"""How long an accepted disruption counts against a pod that is not deleted."""

STRICTER = "the budget is stricter than the DisruptionPolicy allows"
"""The start of the condition's message about a budget that the DisruptionPolicy bounds."""

DISRUPTION_ALLOWED = "DisruptionAllowed"
"""The condition that says whether a pod of the budget may be disrupted, and if not, why."""

_SYNC_FAILED = "SyncFailed"
_UNMANAGED = "pods without a controller are not expected ones; to have them counted, write minAvailable as a number"
_NO_POLICY = disruption_policy.DisruptionPolicySpec()
_NUMBERS = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


class TrackedBudget:
    """A version of a budget, and its pods by key, which `put`, `lose` and `remove` keep counted.

    The API server records an accepted disruption in the status by the pod's name (a debit), and deletes the pod. A
    debited pod does not count as healthy. The debit ends when the pod is terminating or gone, or after two minutes. It
    belongs to an earlier pod if this one was created after it, and to the replacement if this one's deletion began
    before it. Debits of unobserved pods stay.

    The rate (`podium.dev/max-disruptions`) is a separate limit of the API server: `disruptionsAllowed` ignores it.
    """

    def __init__(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        self.object = object_
        self.raw = raw
        self.selector = selectors.compile_label_selector(object_.spec.selector)
        # The pods, the number of healthy ones, of those without a controller, and of those with each priority.
        self.pods: dict[str, Pod] = {}
        self._healthy = self._unmanaged = 0
        self._priorities: Counter[int] = Counter()
        # By uid, the controllers, and the numbers of their pods.
        self._controllers: dict[str, OwnerReference] = {}
        self._covered: Counter[str] = Counter()
        self._expected: tuple[int, OwnerReference | None] | None = None
        # The pods whose debits in this version are over.
        self._over: dict[str, None] = {}

    @property
    def is_relative(self) -> bool:
        """Return whether the expected pods are those that their controllers want, not the existing ones."""
        spec = self.object.spec
        return spec.max_unavailable is not None or isinstance(spec.min_available, str)

    def replace(self, object_: PodDisruptionBudget, raw: Raw) -> None:
        """Take in another version with the same selector."""
        self._over.clear()
        self.object, self.raw = object_, raw

    def put(self, pod: Pod) -> None:
        """Count a covered pod."""
        old = self.pods.get(pod.key)
        if old is not None and old.metadata.uid != pod.metadata.uid:
            self._end(old)
        self.remove(pod.key)
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def lose(self, pod: Pod) -> None:
        """Stop counting a pod that is gone; ``pod`` is its last state."""
        self.remove(pod.key)
        self._end(pod)

    def remove(self, key: str) -> None:
        """Stop counting a pod, if it is there."""
        if (pod := self.pods.pop(key, None)) is not None:
            self._count(pod, -1)
            if not self._priorities[pod.priority]:
                del self._priorities[pod.priority]

    def _count(self, pod: Pod, number: int) -> None:
        self._healthy += number * is_healthy(pod)
        self._priorities[pod.priority] += number
        owner = pod.metadata.controller
        if owner is None:
            self._unmanaged += number
            return
        if owner.uid not in self._controllers:
            self._controllers[owner.uid] = owner
            self._expected = None
        self._covered[owner.uid] += number
        if not self._covered[owner.uid]:
            del self._controllers[owner.uid], self._covered[owner.uid]
            self._expected = None

    def forget_scale(self) -> None:
        """Drop the cached number of expected pods, because a scale has changed."""
        self._expected = None

    def status(self, scales: Scales, now: int, policy: disruption_policy.DisruptionPolicySpec = _NO_POLICY) -> Raw:
        """Return the current status.

        The policy's bound replaces a stricter budget, which the status reports. If the status cannot be computed, no
        disruption is allowed, and the rest stays.
        """
        priority = min(self._priorities, default=None)
        bound = None if priority is None else policy.budget_bound(priority)
        try:
            expected, wanted = self._numbers(scales)
            desired = bounded_desired(wanted, expected, bound)
            rate = rate_status(self.object, now, bound_rate(bound))
        except ValueError as error:
            return self._failed(str(error), now)
        disrupted = self._disrupted(now)
        healthy = self._healthy - sum(map(self._is_healthy, disrupted))
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = self.object.metadata.generation
        message = _UNMANAGED if self.is_relative and self._unmanaged else ""
        bounds = [f"{desired} pods must be up, not {wanted}"] if desired < wanted else []
        if rate is not None and "atLeast" in rate:
            bounds.append(f"the rate is {rate['max']}")
        if bounds:
            message = "; ".join(filter(None, (message, f"{STRICTER}: {', and '.join(bounds)}")))
        status: Raw = {
            "observedGeneration": generation,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "disruptedPods": disrupted,
            "disruptionRate": rate,
            "conditions": self._conditions(
                "SufficientPods" if allowed else "InsufficientPods", message, generation, now
            ),
        }
        return {field: value for field, value in status.items() if value or isinstance(value, int)}

    def next_expiry_ns(self, now: int, *, counts: bool) -> int | None:
        """Return when the next debit expires, or None; ``counts``: of healthy pods, or of others."""
        noted = self._disrupted(now).items()
        times = (parse_time(text) for name, text in noted if self._is_healthy(name) is counts)
        return min((time + DELETION_TIMEOUT_NS for time in times), default=None)

    def next_upkeep_ns(self, now: int) -> int | None:
        """Return when the status changes by itself without an effect on limits: by a debit's end, or the rate."""
        try:
            token_ns = rate_recheck_ns(self.object, now)
        except ValueError:
            # The status reports the error.
            token_ns = None
        return deadlines.earliest((self.next_expiry_ns(now, counts=False), token_ns))

    def warning(self, status: Raw, scales: Scales) -> actions.Record | None:
        """Return the event about a pod, if ``status`` is the first to report a problem."""
        known = self.raw.get("status", {}).get("conditions", ())
        condition = condition_of(status["conditions"], DISRUPTION_ALLOWED)
        message = condition["message"]
        if not message or message == condition_of(known, DISRUPTION_ALLOWED).get("message"):
            return None
        if condition["reason"] == _SYNC_FAILED:
            _, unknown = self._expected_pods(scales)
            pod = None if unknown is None else self._first(unknown.uid)
            reason = "CalculateExpectedPodCountFailed"
        elif STRICTER in message:
            pod, reason = self._first(), "BudgetBounded"
        else:
            pod, reason = self._first(""), "UnmanagedPods"
        if pod is None:
            return None
        message = f"PodDisruptionBudget {self.object.key}: {message}"
        return actions.Record(pod.key, pod.metadata.uid, "Warning", reason, message)

    def _numbers(self, scales: Scales) -> tuple[int, int]:
        """Return the numbers of expected and of required healthy pods. Raises ValueError if unknown."""
        spec = self.object.spec
        if spec.selector is not None and self.selector == selectors.NOTHING:
            raise ValueError("spec.selector is not a valid label selector, and selects nothing")
        if not self.is_relative:
            least = spec.min_available
            return (len(self.pods), least) if isinstance(least, int) else (0, 0)
        pods, unknown = self._expected_pods(scales)
        if unknown is not None:
            label = f"{unknown.kind} {self.object.metadata.namespace}/{unknown.name}"
            raise ValueError(f"the scale of {label}, which controls covered pods, is unknown: it has none, or is gone")
        if spec.max_unavailable is not None:
            return pods, max(0, pods - pods_of_share(spec.max_unavailable, pods))
        return pods, pods_of_share(spec.min_available or 0, pods)

    def _expected_pods(self, scales: Scales) -> tuple[int, OwnerReference | None]:
        """Return how many pods the controllers want, and a controller without known scale, if there is one.

        The result is cached until a controller comes or goes, or `forget_scale`.
        """
        if self._expected is None:
            wanted: dict[str, int] = {}
            unknown = []
            for uid, controller in self._controllers.items():
                scale = scales.of(uid)
                if scale is None:
                    unknown.append(controller)
                else:
                    wanted[scale[0]] = scale[1]
            first = min(unknown, key=lambda owner: (owner.kind, owner.name, owner.uid), default=None)
            self._expected = sum(wanted.values()), first
        return self._expected

    def _first(self, controller: str | None = None) -> Pod | None:
        """Return the first pod by name, of a controller (uid, "" for none) if one is given; None without such pods."""
        found = (pod for pod in self.pods.values() if controller is None or controller_uid(pod) == controller)
        return min(found, key=lambda pod: pod.metadata.name, default=None)

    def _disrupted(self, now: int) -> dict[str, str]:
        """Return the debits that count."""
        debits = ((name, text, parse_time(text)) for name, text in sorted(self.object.status.disrupted_pods.items()))
        lasting = ((name, text, since) for name, text, since in debits if since + DELETION_TIMEOUT_NS > now)
        return {name: text for name, text, since in lasting if not self._is_over(name, since)}

    def _is_over(self, name: str, accepted_ns: int) -> bool:
        """Return whether a debit is over."""
        pod = self.pods.get(f"{self.object.metadata.namespace}/{name}")
        if name in self._over or pod is None:
            return name in self._over
        created_ns = time_of(pod.metadata.creation_timestamp)
        return _was_deleted_for(pod, accepted_ns) or (created_ns is not None and created_ns > accepted_ns)

    def _end(self, pod: Pod) -> None:
        """End the debit of a pod that is gone, unless a replacement of the same second has it."""
        accepted = self.object.status.disrupted_pods.get(pod.metadata.name)
        if accepted is not None and _was_deleted_for(pod, parse_time(accepted)):
            self._over[pod.metadata.name] = None

    def _is_healthy(self, name: str) -> bool:
        pod = self.pods.get(f"{self.object.metadata.namespace}/{name}")
        return pod is not None and is_healthy(pod)

    def _failed(self, problem: str, now: int) -> Raw:
        status = {**dict.fromkeys(_NUMBERS, 0), **self.raw.get("status", {}), "disruptionsAllowed": 0}
        conditions = self._conditions(_SYNC_FAILED, problem, status.get("observedGeneration", 0), now)
        return {**status, "conditions": conditions}

    def _conditions(self, reason: str, message: str, generation: int, now: int) -> list[Raw]:
        status = "True" if reason == "SufficientPods" else "False"
        condition: Raw = {"type": DISRUPTION_ALLOWED, "status": status, "reason": reason, "message": message}
        if generation:
            condition["observedGeneration"] = generation
        return with_conditions(self.raw.get("status", {}).get("conditions", []), (condition,), now)


def _was_deleted_for(pod: Pod, accepted_ns: int) -> bool:
    """Return whether a pod's deletion began when a disruption was accepted, or later."""
    deleted_ns = deletion_ns(pod)
    return deleted_ns is not None and deleted_ns >= accepted_ns


def is_healthy(pod: Pod) -> bool:
    """Return whether a pod is ready and not terminating."""
    return pod.is_ready and not pod.is_terminating


def controller_uid(pod: Pod) -> str:
    """Return the uid of the pod's controller, "" without one."""
    owner = pod.metadata.controller if pod.metadata.owner_references else None
    return "" if owner is None else owner.uid


_Scaled = tuple[int, str]
"""The wanted replicas of a controller, and the uid of the Deployment that decides instead, or ""."""


class Scales:
    """The scale of each controller; a Deployment's ReplicaSet has the Deployment's.

    Custom resources are assumed to have `spec.replicas`; their definitions are not read.
    """

    def __init__(self) -> None:
        self._scaled: dict[str, _Scaled] = {}
        self._uids: dict[tuple[str, str, str], str] = {}
        # The ReplicaSets of each Deployment.
        self._sets: indexes.MultiMap[str, str] = indexes.MultiMap()

    def put(self, object_: Kubernetes, raw: Raw) -> list[str]:
        """Take in an object; return the uids of the controllers whose scale has changed."""
        uid, name, spec = object_.metadata.uid, _name(object_), raw.get("spec")
        scaled: _Scaled | None = None
        if isinstance(object_, Replicated):
            parent = object_.metadata.controller if isinstance(object_, ReplicaSet) else None
            deployment = parent.uid if parent is not None and parent.kind == "Deployment" else ""
            scaled = object_.spec.replicas, deployment
        elif type(object_) is Kubernetes:
            replicas = spec.get("replicas") if isinstance(spec, dict) else None
            scaled = (replicas, "") if isinstance(replicas, int) and not isinstance(replicas, bool) else None
        known = self._uids.get(name, uid)
        if known == uid and self._scaled.get(uid) == scaled:
            return []
        changed = self._forget(known)
        if scaled is None:
            return changed
        self._uids[name] = uid
        self._scaled[uid] = scaled
        if scaled[1]:
            self._sets.add(scaled[1], uid)
        return list(dict.fromkeys((*changed, uid, *self._sets.get(uid, ()))))

    def remove(self, object_: Kubernetes) -> list[str]:
        """Forget an object; return the uids of the controllers whose scale has changed."""
        if self._uids.get(_name(object_)) != object_.metadata.uid:
            return []
        del self._uids[_name(object_)]
        return self._forget(object_.metadata.uid)

    def of(self, uid: str) -> tuple[str, int] | None:
        """Return the uid of the object that scales a controller, and the wanted pods; None if unknown."""
        scaled = self._scaled.get(uid)
        if scaled is None:
            return None
        replicas, deployment = scaled
        return self.of(deployment) if deployment else (uid, replicas)

    def _forget(self, uid: str) -> list[str]:
        scaled = self._scaled.pop(uid, None)
        if scaled is None:
            return []
        self._sets.discard(scaled[1], uid)
        return [uid, *self._sets.get(uid, ())]


def _name(object_: Kubernetes) -> tuple[str, str, str]:
    if type(object_) is Kubernetes:
        return kinds.group_of(object_.api_version), object_.kind, object_.key
    return "", type(object_).__name__, object_.key
