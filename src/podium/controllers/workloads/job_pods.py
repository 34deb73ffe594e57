"""The uncounted pods of Jobs, completion indexes, and the progress of a Job: its counts, and what its pods add.

A finalizer keeps an ended pod until it is counted, once. Source: pkg/controller/job (tracking_utils.go,
trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct, field

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.selectors import parse_int64
from podium.api.times import SECOND, parse_time, time_of
from podium.api.workloads import JOB_TRACKING, Job, JobSpec, PodFailurePolicy, PodFailurePolicyRule
from podium.controllers.actions import PatchObject, versioned_patch
from podium.controllers.workloads.owned_pods import OwnedPod, OwnedPodChange, WorkloadObject

Outcome = Literal["succeeded", "failed"]
_FIRST_WAIT_NS, _LONGEST_WAIT_NS = 10 * SECOND, 600 * SECOND


class JobState(Struct):
    """The state of a Job and of its tracked pods, by uid.

    ``ended`` have ended or were deleted, and have the finalizer. ``untracked`` are active without it. ``terminating``
    were deleted and have not ended. ``gone`` were ``ended`` and are deleted. ``missed`` are pods in the status that
    were not observed, and since when. ``requested`` has the version on which finalizers were changed. ``checked`` were
    verified to be as known. ``noted`` are known to the backoff, which counts ``failures`` since the last success.

    ``last_failed`` has by index the failed pod with most failures before it, if failures of each index are limited.

    ``is_gone``: the Job was deleted; ``missed_since``: it was not observed yet. ``completed`` are the completed indexes
    in its status below its completions: from which text and completions, and as a set.
    """

    ended: dict[str, OwnedPod] = {}
    untracked: dict[str, OwnedPod] = {}
    terminating: dict[str, OwnedPod] = {}
    gone: dict[str, None] = {}
    missed: dict[str, int] = {}
    requested: dict[str, str] = {}
    checked: dict[str, None] = {}
    noted: dict[str, None] = {}
    last_failed: dict[int, OwnedPod] = {}
    failures: int = 0
    last_failure_ns: int = 0
    is_gone: bool = False
    missed_since: int | None = None
    completed: tuple[str, int, frozenset[int]] = ("", 0, frozenset())

    def see(self, change: OwnedPodChange) -> None:
        """Take in a change of a pod of the Job, or its deletion."""
        pod, is_there = change.now, not change.is_gone
        uid, has_finalizer = pod.uid, is_tracked(pod)
        if uid in self.ended and not is_there:
            self.gone[uid] = None
        for group, belongs in (
            (self.terminating, pod.pod.is_terminating and not pod.pod.is_terminal),
            (self.untracked, pod.is_active and not has_finalizer),
            (self.ended, has_finalizer and not pod.is_active),
        ):
            if is_there and belongs:
                group[uid] = pod
            else:
                group.pop(uid, None)
        count, index = failures_before(pod), index_of(pod.pod, 2**31)
        if count is not None and index is not None and (pod.pod.is_terminating or pod.pod.status.phase == "Failed"):
            last = self.last_failed.get(index)
            if last is None or sum(count) >= sum(failures_before(last) or ()):
                self.last_failed[index] = pod
        if not is_there or self.requested.get(uid) != pod.pod.metadata.resource_version:
            self.requested.pop(uid, None)
        if uid not in self.ended:
            self.checked.pop(uid, None)
            self.noted.pop(uid, None)

    def ask(self, pod: OwnedPod) -> bool:
        """Return whether to change the pod's finalizers, which is done once per version."""
        version = pod.pod.metadata.resource_version
        is_new = self.requested.get(pod.uid) != version
        self.requested[pod.uid] = version
        return is_new

    def check(self, uid: str) -> None:
        """Record that an ended pod was verified."""
        self.requested.pop(uid, None)
        if uid in self.ended:
            self.checked[uid] = None

    def note_ends(self, ended: Iterable[tuple[OwnedPod, int, Outcome]]) -> None:
        """Record the ends of pods, with their times, for the backoff."""
        new = [(end_ns, outcome, pod.uid) for pod, end_ns, outcome in ended if pod.uid not in self.noted]
        for end_ns, outcome, uid in sorted(new):
            self.noted[uid] = None
            if outcome == "succeeded":
                self.failures = self.last_failure_ns = 0
            else:
                self.failures += 1
                self.last_failure_ns = max(self.last_failure_ns, end_ns)

    @property
    def is_hopeless(self) -> bool:
        """Return whether a pod failed again after a wait of maximum length."""
        return self.failures > 1 and _wait_ns(self.failures - 1) == _LONGEST_WAIT_NS

    def completed_indexes(self, job: Job) -> frozenset[int]:
        """Return the completed indexes in the Job's status; others end with the completions of an elastic Job."""
        text, completions = job.status.completed_indexes, job.spec.completions or 0
        if self.completed[:2] != (text, completions):
            self.completed = text, completions, frozenset(read_indexes(text, completions))
        return self.completed[2]


def backoff_end_ns(last_failure_ns: int, failures: int) -> int:
    """Return when a pod may be created: 10 s after a failure, doubled with each earlier one, up to 10 min."""
    return last_failure_ns + _wait_ns(failures) if failures else 0


def _wait_ns(failures: int) -> int:
    return min(_FIRST_WAIT_NS << min(failures - 1, 16), _LONGEST_WAIT_NS)


def is_tracked(pod: OwnedPod) -> bool:
    """Return whether a pod was not counted yet."""
    return JOB_TRACKING in pod.pod.metadata.finalizers


def waits_for_failure(spec: JobSpec) -> bool:
    """Return whether a deleted pod is replaced only after it has ended (onlyReplaceFailedPods)."""
    return spec.pod_failure_policy is not None or spec.pod_replacement_policy == "Failed"


def outcome_of(pod: OwnedPod, *, waits: bool) -> Outcome | None:
    """Return how a pod has ended; None if it has not.

    A deleted pod has failed; if the Job ``waits``, only once its phase is Failed.
    """
    if pod.pod.is_terminal:
        return "succeeded" if pod.pod.status.phase == "Succeeded" else "failed"
    return "failed" if pod.pod.is_terminating and not waits else None


def finalizers_patch(pod: OwnedPod, cause: str, *, tracked: bool) -> PatchObject:
    """Return the patch that adds or removes the finalizer, if the pod is unchanged."""
    kept = [finalizer for finalizer in pod.pod.metadata.finalizers if finalizer != JOB_TRACKING]
    finalizers = [*kept, JOB_TRACKING] if tracked else kept
    return versioned_patch(pod.pod, {"metadata": {"finalizers": finalizers or None}}, cause)


def new_job_pod(workload: WorkloadObject[Job], index: int | None, failures: tuple[int, int] | None = None) -> Raw:
    """Return a pod of a Job; with its ``index``, and the ``failures`` of that before it if they are limited."""
    meta, template = workload.object.metadata, workload.template
    given, spec = template.get("metadata", {}), template.get("spec", {})
    names = {"job-name": meta.name, "controller-uid": meta.uid}
    labels = {**names, **{f"batch.kubernetes.io/{name}": value for name, value in names.items()}}
    metadata: Raw = {
        "generateName": f"{meta.name}-",
        "finalizers": [*(one for one in given.get("finalizers", ()) if one != JOB_TRACKING), JOB_TRACKING],
    }
    if index is not None:
        suffix = f"-{index}-"
        # The part before the generated suffix has up to 58 characters, and keeps the index.
        metadata["generateName"] = meta.name[: 58 - len(suffix)] + suffix
        counts = zip((FAILURES, IGNORED_FAILURES), failures or (), strict=False)
        counted = {name: str(count) for name, count in counts if count or name == FAILURES}
        metadata["annotations"] = {**given.get("annotations", {}), INDEX: str(index), **counted}
        labels[INDEX] = str(index)
        lists = {name: [_with_index(container) for container in spec[name]] for name in _CONTAINERS if name in spec}
        spec = {**spec, **lists, "hostname": f"{meta.name}-{index}"}
    return workload.new_pod(template, metadata, labels, spec)


INDEX = "batch.kubernetes.io/job-completion-index"
"""Annotation and label of a pod: its completion index."""


_CONTAINERS = ("containers", "initContainers")
_INDEX_FIELD = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
_INDEX_VARIABLE = {"name": "JOB_COMPLETION_INDEX", "valueFrom": _INDEX_FIELD}


def _with_index(container: Raw) -> Raw:
    """Return a container with the completion index in its environment, unless it has a variable of that name."""
    variables = container.get("env") or []
    is_given = any(variable.get("name") == _INDEX_VARIABLE["name"] for variable in variables)
    return container if is_given else {**container, "env": [*variables, _INDEX_VARIABLE]}


FAILURES = "batch.kubernetes.io/job-index-failure-count"
"""Annotation of a pod: the failures of its index before it that count towards the limit."""

IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
"""Annotation of a pod: the other failures of its index before it."""


def failures_before(pod: OwnedPod) -> tuple[int, int] | None:
    """Return how many failures of its index before it counted, and did not; None if its Job does not limit them."""
    annotations = pod.pod.metadata.annotations
    counting, ignored = (parse_int64(annotations.get(name, "")) for name in (FAILURES, IGNORED_FAILURES))
    return None if counting is None else (counting, ignored or 0)


def failures_after(pod: OwnedPod, policy: PodFailurePolicy | None) -> tuple[int, int]:
    """Return the same including the failure of the pod."""
    counting, ignored = failures_before(pod) or (0, 0)
    return (counting + 1, ignored) if failure_result(policy, pod).counts else (counting, ignored + 1)


def index_of(pod: Pod, completions: int) -> int | None:
    """Return the pod's index; None if it has none below ``completions``."""
    index = parse_int64(pod.metadata.annotations.get(INDEX, ""))
    return index if index is not None and 0 <= index < completions else None


def read_indexes(text: str, completions: int) -> set[int]:
    """Parse indexes below ``completions``; invalid parts are ignored."""
    indexes: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = parse_int64(first), parse_int64(last or first)
        if low is not None and high is not None:
            indexes.update(range(max(0, low), min(high + 1, completions)))
    return indexes


def write_indexes(indexes: Iterable[int]) -> str:
    """Format indexes; runs of more than two become ranges."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def free_indexes(count: int, completions: int, taken: set[int]) -> list[int]:
    """Return the lowest ``count`` free indexes, or fewer."""
    return list(islice((index for index in range(completions) if index not in taken), count))


class Progress(Struct):
    """The next status of a Job.

    A pod is counted in steps, so that it counts once even if the controller restarts: its uid is added to ``uncounted``
    in the status; its finalizer is removed; the number in ``finished`` grows and the uid is removed. ``indexes`` need
    no steps; ``counted`` are those in the status. ``released`` are pods to release, ``doubtful`` ones may have been
    counted before, and ``ended`` are all that have ended. ``ends_job`` is why the Job fails by its failure policy.
    ``failed`` are the indexes with more failures than allowed.
    """

    finished: dict[Outcome, int]
    counted: frozenset[int]
    indexes: set[int]
    uncounted: dict[Outcome, list[str]] = field(default_factory=lambda: {"succeeded": [], "failed": []})
    released: list[OwnedPod] = []
    doubtful: list[OwnedPod] = []
    ended: list[tuple[OwnedPod, Outcome]] = []
    ends_job: str = ""
    failed: set[int] = set()

    def successes(self, job: Job) -> int:
        """Return the number of succeeded pods or indexes."""
        return len(self.indexes) if _is_indexed(job) else self.number("succeeded")

    def status(self, job: Job) -> Raw:
        # An elastic Job with fewer completions than before has lost indexes of its status.
        is_same = len(self.indexes) == len(self.counted) == job.status.succeeded
        return {
            "succeeded": len(self.indexes) if _is_indexed(job) else self.finished["succeeded"],
            "failed": self.finished["failed"],
            "completedIndexes": job.status.completed_indexes if is_same else write_indexes(self.indexes),
            "failedIndexes": None if job.spec.backoff_limit_per_index is None else write_indexes(self.failed),
            "uncountedTerminatedPods": {name: uids for name, uids in self.uncounted.items() if uids},
        }

    def number(self, outcome: Outcome) -> int:
        """Return the number of pods that ended so, without failed ones that the failure policy ignores."""
        return self.finished[outcome] + len(self.uncounted[outcome])


def progress_of(
    job: Job,
    state: JobState,
    known: Mapping[str, OwnedPod],
    *,
    is_failing: bool,
    older_than_ns: int,
    missing: frozenset[str],
) -> Progress:
    """Return the progress of a Job.

    ``known`` are all of its pods. ``is_failing``: deleted pods have failed. A pod created until ``older_than_ns`` may
    have been counted by an earlier instance, and is doubtful unless checked. ``missing`` are uids that were waited for
    long enough.
    """
    status, counted = job.status, state.completed_indexes(job)
    uncounted: dict[Outcome, Sequence[str]] = {
        "succeeded": status.uncounted_terminated_pods.succeeded,
        "failed": status.uncounted_terminated_pods.failed,
    }
    progress = Progress({"succeeded": status.succeeded, "failed": status.failed}, counted, set(counted))
    if status.start_time is None and not (status.succeeded or status.failed or status.conditions):
        _count_untracked(job, known, progress)
    for outcome, uids in uncounted.items():
        for uid in uids:
            if uid in state.ended:
                progress.released.append(state.ended[uid])
            # The others have no finalizer any more, so they count in the numbers from now on.
            is_held = is_tracked(known[uid]) if uid in known else uid not in state.gone and uid not in missing
            if is_held:
                progress.uncounted[outcome].append(uid)
            else:
                progress.finished[outcome] += 1
    waits = waits_for_failure(job.spec) and not is_failing
    written = {uid for uids in uncounted.values() for uid in uids}
    for uid, pod in state.ended.items():
        if (found := outcome_of(pod, waits=waits)) is not None:
            progress.ended.append((pod, found))
            if uid not in written:
                is_doubtful = pod.created_ns <= older_than_ns and uid not in state.checked
                _count_ended(job, pod, found, progress, is_doubtful=is_doubtful)
    # The pods that a failing Job deletes fail no index.
    before = read_indexes(status.failed_indexes or "", job.spec.completions or 0)
    progress.failed = before if is_failing else before | progress.failed
    return progress


def _is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def _count_ended(job: Job, pod: OwnedPod, outcome: Outcome, progress: Progress, *, is_doubtful: bool) -> None:
    """Add an ended pod to those to be counted, or release it if it does not count."""
    index = index_of(pod.pod, job.spec.completions or 0) if _is_indexed(job) else None
    if _is_indexed(job) and (index is None or (outcome == "succeeded" and index in progress.counted)):
        progress.released.append(pod)
        return
    if outcome == "succeeded" and index is not None:
        progress.indexes.add(index)
        return
    failure = failure_result(job.spec.pod_failure_policy, pod)
    if outcome == "failed" and not failure.counts:
        progress.released.append(pod)
    elif is_doubtful:
        progress.doubtful.append(pod)
    else:
        progress.uncounted[outcome].append(pod.uid)
        if outcome == "failed":
            progress.ends_job = progress.ends_job or failure.ends_job
            limit = job.spec.backoff_limit_per_index
            before = failures_before(pod) or (0, 0)
            if limit is not None and index is not None and (failure.ends_index or before[0] >= limit):
                progress.failed.add(index)


def _count_untracked(job: Job, known: Mapping[str, OwnedPod], progress: Progress) -> None:
    """Count the pods that ended before any controller wrote the Job's status, without the finalizer."""
    for pod in known.values():
        if pod.pod.is_terminal and not is_tracked(pod):
            outcome: Outcome = "succeeded" if pod.pod.status.phase == "Succeeded" else "failed"
            if _is_indexed(job) and outcome == "succeeded":
                index = index_of(pod.pod, job.spec.completions or 0)
                progress.indexes |= set() if index is None else {index}
            else:
                progress.finished[outcome] += 1


class PodFailure(Struct, frozen=True):
    """Whether a failure counts towards the limit and ends its index; ``ends_job`` is why it ends the Job, or ""."""

    counts: bool = True
    ends_job: str = ""
    ends_index: bool = False


def failure_result(policy: PodFailurePolicy | None, pod: OwnedPod) -> PodFailure:
    """Return the result of a failure by the first matching rule."""
    for index, rule in enumerate(policy.rules if policy is not None else ()):
        matched = _matched(rule, pod)
        if matched and rule.action == "FailJob":
            return PodFailure(ends_job=f"{matched}, which rule {index} of the podFailurePolicy takes to be final")
        if matched:
            return PodFailure(counts=rule.action != "Ignore", ends_index=rule.action == "FailIndex")
    return PodFailure()


def restarts_of(pods: Iterable[OwnedPod]) -> int:
    """Return the container restarts in pods that have not ended (pastBackoffLimitOnFailure)."""
    running = (pod.status for pod in pods if pod.pod.status.phase in ("Pending", "Running"))
    fields = ("containerStatuses", "initContainerStatuses")
    counts = (one.get("restartCount", 0) for status in running for field in fields for one in status.get(field, ()))
    return sum(count for count in counts if isinstance(count, int))


def finished_ns(pod: OwnedPod) -> int:
    """Return when a pod ended: the end of its last container or sidecar, of readiness, its deletion, or creation."""
    first = {one.name for one in pod.pod.spec.init_containers if one.restart_policy != "Always"}
    ends = [time_of(state.get("finishedAt")) or 0 for name, state in _ends(pod) if name not in first]
    if ends and all(ends):
        return max(ends)
    condition = pod.pod.status.condition("Ready")
    if condition is not None and condition.status == "False" and (since := pod.ready_since_ns()):
        return since
    meta = pod.pod.metadata
    if meta.deletion_timestamp is not None:
        return parse_time(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) * SECOND
    return pod.created_ns


def _matched(rule: PodFailurePolicyRule, pod: OwnedPod) -> str:
    """Return what a rule matches, in words; "" for nothing."""
    if (codes := rule.on_exit_codes) is not None:
        for name, state in _ends(pod):
            code = state.get("exitCode")
            is_failure = isinstance(code, int) and code and codes.container_name in (None, name)
            if is_failure and (code in codes.values) == (codes.operator == "In"):
                return f"container {name} of pod {pod.pod.key} has exited with code {code}"
        return ""
    meant = {(condition.type, condition.status) for condition in rule.on_pod_conditions}
    found = (condition.type for condition in pod.pod.status.conditions if (condition.type, condition.status) in meant)
    return next((f"pod {pod.pod.key} has condition {type_}" for type_ in found), "")


def _ends(pod: OwnedPod) -> Iterator[tuple[str, Raw]]:
    """Yield how each container has ended, by name; empty for those that have not."""
    for status in (*pod.status.get("containerStatuses", ()), *pod.status.get("initContainerStatuses", ())):
        yield status.get("name", ""), status.get("state", {}).get("terminated") or {}
