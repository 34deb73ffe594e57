"""Validation of workloads, and of groups of pods.

Source: pkg/apis/apps/validation, pkg/apis/batch/validation, pkg/apis/scheduling/validation, and core/validation for
ReplicationControllers.
"""

from __future__ import annotations

from itertools import pairwise

import msgspec

from podium.api import errors, pod_group, policy, times
from podium.api.checks import check as refuse
from podium.api.checks import parsed
from podium.api.meta import Raw
from podium.api.names import label_name_problem, subdomain_problem
from podium.api.selectors import LabelSelector, compile_label_selector, parse_int64
from podium.api.validation.findings import Findings, Place, too_long
from podium.api.validation.pods import check_template
from podium.api.validation.rules import check, check_type, declare

_MAX_PARALLELISM = 100_000
_MAX_INDEXES = 1_000_000
_MAX_EXIT_CODES = 255
_MAX_MANAGED_BY = 63
_MAX_CRON_NAME = 52
_GROUP_FIELDS = f"""schedulingPolicy! schedulingConstraints resourceClaims:..4 resourceClaims
  disruptionMode:{"|".join(pod_group.DISRUPTION_MODES)} priority:..{policy.HIGHEST_USER_PRIORITY}"""

declare(
    f"""\
ControllerRevision: @revision_data revision:0..
CronJob: @cron_name spec+
CronJobSpec: schedule! schedule:schedule concurrencyPolicy:Allow|Forbid|Replace startingDeadlineSeconds:0..*
  successfulJobsHistoryLimit:0..* failedJobsHistoryLimit:0..* jobTemplate+
DaemonSet Deployment PodGroup Workload: spec+
DaemonSetSpec: minReadySeconds:0..* revisionHistoryLimit:0..* updateStrategy selector @selected_template
DaemonSetUpdateStrategy: type:OnDelete|RollingUpdate rollingUpdate
DeploymentSpec: replicas:0..* minReadySeconds:0..* revisionHistoryLimit:0..* progressDeadlineSeconds:0.. @progress
  strategy selector @selected_template
DeploymentStrategy: type:Recreate|RollingUpdate @rolling_update
GangSchedulingPolicy: minCount!:1..
Job: spec+ @job status
JobSpec: parallelism:0..* completions:0..* activeDeadlineSeconds:0..* backoffLimit:0..* ttlSecondsAfterFinished:0..
  backoffLimitPerIndex:0.. maxFailedIndexes:0.. completionMode:NonIndexed|Indexed @completions*
  podReplacementPolicy:Failed|TerminatingOrFailed managedBy:domain-path @job_spec podFailurePolicy
JobStatus: active:0.. succeeded:0.. failed:0.. ready:0.. terminating:0..
JobTemplateSpec: @job_of_template spec+
PodFailurePolicy: @failure_policy* rules:..20* rules
PodFailurePolicyOnExitCodesRequirement: operator!:In|NotIn @failure_codes*
PodFailurePolicyOnPodConditionsPattern: type! status:False|True|Unknown
PodFailurePolicyRule: action!:Count|FailIndex|FailJob|Ignore @failure_rule* ^onExitCodes|onPodConditions*
  onPodConditions:..20 onPodConditions onExitCodes
PodGroupResourceClaim: name!:label =resourceClaimName|resourceClaimTemplateName
PodGroupSchedulingConstraints: topology:..1 topology
PodGroupSchedulingPolicy: =basic|gang gang
PodGroupSpec: podGroupTemplateRef {_GROUP_FIELDS}
PodGroupTemplate: name!:label {_GROUP_FIELDS}
PodGroupTemplateReference: =workload workload
ReplicaSet ReplicationController StatefulSet: spec+ status
ReplicaSetSpec: replicas:0..* minReadySeconds:0..* selector @selected_template
ReplicaSetStatus: replicas:0.. observedGeneration:0.. readyReplicas:0.. availableReplicas:0.. fullyLabeledReplicas:0..
ReplicationControllerSpec: replicas:0..* minReadySeconds:0..* selector:labels @controller_template
ReplicationControllerStatus: replicas:0.. observedGeneration:0.. readyReplicas:0.. availableReplicas:0..
  fullyLabeledReplicas:0..
RollingUpdateDaemonSet: maxUnavailable:share* maxSurge:share @surge_or_unavailable
RollingUpdateDeployment: maxUnavailable:share* maxSurge:any-share* @some_progress*
RollingUpdateStatefulSetStrategy: partition:0..* maxUnavailable:share
StatefulSetOrdinals: start:0..*
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted:Delete|Retain whenScaled:Delete|Retain
StatefulSetSpec: replicas:0..* minReadySeconds:0..* revisionHistoryLimit:0..* ordinals
  podManagementPolicy:OrderedReady|Parallel updateStrategy persistentVolumeClaimRetentionPolicy selector
  @selected_template
StatefulSetStatus: replicas:0.. observedGeneration:0.. readyReplicas:0.. availableReplicas:0.. currentReplicas:0..
  updatedReplicas:0..
StatefulSetUpdateStrategy: type:OnDelete|RollingUpdate @rolling_update
TopologyConstraint: key!:key
WorkloadPodGroupTemplateReference: workloadName!:subdomain podGroupTemplateName!:label
WorkloadSpec: controllerRef podGroupTemplates!##name podGroupTemplates:..8
scheduling.k8s.io/v1alpha2.TypedLocalObjectReference: kind! name!
""",
    """\
CronJob: @parsed_schedule status
CronJobStatus: lastScheduleTime:time
DaemonSetSpec DeploymentSpec ReplicaSetSpec: template @selects_template
DeploymentStrategy StatefulSetUpdateStrategy: rollingUpdate
JobSpec: selector template
JobStatus: startTime:time
ReplicationControllerSpec: template
StatefulSetSpec: volumeClaimTemplates:..1000 @claim_names template @selects_template
""",
)


@check
def _selected_template(spec: Place) -> None:
    """Check the selector of a workload, and its template, which it must select.

    The pods of a StatefulSet also have the volumes of its claim templates. kube-apiserver validates its template only
    when the pods are created; here its problems are reported immediately.
    """
    selector = spec.child("selector")
    template = check_template(
        spec, [claim.child_or_empty("metadata").text("name") for claim in spec.objects("volumeClaimTemplates")]
    )
    if selector is None:
        spec.required("selector")
    elif not selector.value.get("matchLabels") and not selector.value.get("matchExpressions"):
        spec.invalid("selector", selector.value, "empty selector is invalid for a workload")
    elif not _selects(spec, template.child_or_empty("metadata").text_mapping("labels")):
        _report_unselected(template)
    _check_always(template)


@check
def _controller_template(spec: Place) -> None:
    """Check the template of a ReplicationController, whose labels are the default of its selector."""
    template = check_template(spec)
    labels = template.child_or_empty("metadata").text_mapping("labels")
    selector = spec.text_mapping("selector") or labels
    if not selector and spec.has("template"):
        spec.required("selector")
    if any(labels.get(key) != value for key, value in selector.items()):
        _report_unselected(template)
    _check_always(template)


def _selects(spec: Place, labels: dict[str, str]) -> bool:
    """Return whether the selector matches the labels; an invalid one is reported elsewhere."""
    try:
        selector = msgspec.convert(spec.value.get("selector"), LabelSelector)
    except msgspec.ValidationError:
        return True
    return compile_label_selector(selector).matches(labels)


def _report_unselected(template: Place) -> None:
    metadata = template.child_or_empty("metadata")
    metadata.invalid("labels", metadata.value.get("labels", {}), "`selector` does not match template `labels`")


def _check_always(template: Place) -> None:
    """Check that the restart policy is Always, and that there is no deadline."""
    spec = template.child_or_empty("spec")
    policy = spec.text("restartPolicy", "Always")
    if policy != "Always":
        spec.unsupported("restartPolicy", policy, ("Always",))
    if spec.has("activeDeadlineSeconds"):
        detail = "activeDeadlineSeconds in a workload whose pods run on is not Supported"
        spec.forbidden("activeDeadlineSeconds", detail)


@check
def _selects_template(spec: Place) -> None:
    """Refuse a workload that does not select its own pods: it would create pods forever."""
    labels = spec.child_or_empty("template", "metadata").value.get("labels", {})
    selector = msgspec.convert(spec.value.get("selector"), LabelSelector | None)
    if not compile_label_selector(selector).matches(labels):
        problem = "does not select the pods of the template; it must match .spec.template.metadata.labels"
        raise errors.InputError(problem, path=spec.path("selector"))


@check
def _progress(spec: Place) -> None:
    deadline, ready = spec.number("progressDeadlineSeconds"), spec.number("minReadySeconds") or 0
    if (600 if deadline is None else deadline) <= ready:
        spec.invalid("progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


@check
def _rolling_update(strategy: Place) -> None:
    rolling, type_ = strategy.child("rollingUpdate"), strategy.text("type")
    is_deployment = strategy.field == "strategy"
    if rolling is None:
        return
    if type_ == "Recreate" and is_deployment:
        strategy.forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif type_ == "OnDelete" and not is_deployment:
        strategy.invalid("rollingUpdate", {}, "only allowed for updateStrategy 'RollingUpdate'")
    else:
        check_type(rolling, "RollingUpdateDeployment" if is_deployment else "RollingUpdateStatefulSetStrategy")


@check
def _some_progress(rolling: Place) -> None:
    if _is_none(rolling.value.get("maxUnavailable", "25%")) and _is_none(rolling.value.get("maxSurge", "25%")):
        rolling.invalid("maxUnavailable", rolling.value.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")


@check
def _surge_or_unavailable(rolling: Place) -> None:
    missing, extra = _is_none(rolling.value.get("maxUnavailable", 1)), _is_none(rolling.value.get("maxSurge", 0))
    if missing and extra:
        rolling.required("maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not missing and not extra:
        rolling.invalid("maxSurge", rolling.value.get("maxSurge"), "may not be set when maxUnavailable is non-zero")


def _is_none(share: object) -> bool:
    """Return whether the share amounts to 0 pods for any number of replicas."""
    return share == 0 or (isinstance(share, str) and share.strip("0") == "%")


@check
def _claim_names(spec: Place) -> None:
    for claim in spec.objects("volumeClaimTemplates"):
        metadata = claim.child_or_empty("metadata")
        refuse(subdomain_problem(metadata.text("name")), metadata.path("name"))


@check
def _revision_data(revision: Place) -> None:
    if not revision.has("data"):
        revision.required("data", "data is mandatory")


@check
def _job(job: Place) -> None:
    """Check the selector of a Job, which is generated unless `manualSelector` is true, and the names of its pods."""
    metadata, spec = job.child_or_empty("metadata"), job.child_or_empty("spec")
    selector = spec.child("selector")
    if selector is not None:
        check_type(selector, "LabelSelector")
    labels = spec.child_or_empty("template", "metadata").text_mapping("labels")
    is_stored = bool(metadata.text("uid"))
    if not spec.has("selector"):
        if spec.flag("manualSelector") and not is_stored:
            spec.required("selector")
    elif not _selects(spec, labels):
        if spec.flag("manualSelector") or is_stored:
            _report_unselected(spec.child_or_empty("template"))
        else:
            spec.invalid("selector", {}, "`selector` not auto-generated")
    completions, name = spec.number("completions") or 0, metadata.text("name")
    if spec.text("completionMode") == "Indexed" and completions > 0 and name:
        pod_name = f"{name}-{completions - 1}"
        if label_name_problem(pod_name) is not None:
            metadata.invalid("name", name, f"will not able to create pod with invalid DNS label: {pod_name}")


_INTERIM = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
_TERMINAL = (*_INTERIM, *_INTERIM.values())
_EXCLUSIVE = (
    ("Complete", "Failed"),
    ("Complete", "FailureTarget"),
    ("SuccessCriteriaMet", "Failed"),
    ("SuccessCriteriaMet", "FailureTarget"),
)
_COUNTS = ("active", "failed", "ready", "succeeded", "terminating")


def job_status_findings(spec: Raw, before: Raw, after: Raw) -> Findings:
    """Return what is wrong with a status of a Job that replaces another one.

    Source: ValidateJobStatusUpdate, with the options of the strategy in pkg/registry/batch/job.
    """
    old, new = (Place({"status": status}, Findings()).child_or_empty("status") for status in (before, after))
    were, are = (
        {one.text("type") for one in status.objects("conditions") if one.text("status") == "True"}
        for status in (old, new)
    )
    problems = [f"cannot disable the terminal {type_}=True condition" for type_ in _TERMINAL if type_ in were - are]
    problems += [
        f"cannot set {one}=True and {other}=true conditions" for one, other in _EXCLUSIVE if {one, other} <= are
    ]
    ends = [type_ for type_ in _INTERIM if type_ in are]
    missing = [(end, _INTERIM[end]) for end in ends if _INTERIM[end] not in are]
    problems += [f"cannot set {end}=True condition without the {type_}=true condition" for end, type_ in missing]
    for problem in problems:
        new.check("conditions", problem)
    had, has = ({name: status.number(name) or 0 for name in _COUNTS} for status in (old, new))
    (was_begun, begun), (was_over, over) = (
        (old.text(name), new.text(name)) for name in ("startTime", "completionTime")
    )
    is_indexed, is_limited = spec.get("completionMode") == "Indexed", spec.get("backoffLimitPerIndex") is not None
    is_elastic = is_indexed and spec.get("completions") == spec.get("parallelism")
    is_begun_again = was_begun not in ("", begun) and not spec.get("suspend")
    is_over_first = begun and over and (times.time_of(over) or 0) < (times.time_of(begun) or 0)
    uncounted = new.child_or_empty("uncountedTerminatedPods").value.values()
    for name, is_wrong, detail in (
        ("active", ends and has["active"], "active>0 is invalid for finished job"),
        ("terminating", ends and has["terminating"], "terminating>0 is invalid for finished job"),
        ("uncountedTerminatedPods", ends and any(uncounted), "needs to be empty for finished job"),
        ("ready", has["ready"] > has["active"], "cannot set more ready pods than active"),
        ("failed", has["failed"] < had["failed"], "cannot decrease the failed counter"),
        ("succeeded", has["succeeded"] < had["succeeded"] and not is_elastic, "cannot decrease the succeeded counter"),
        ("startTime", ends and not begun, "startTime is required for finished job"),
        ("startTime", is_begun_again, "startTime cannot be removed for unsuspended job"),
        ("completionTime", "Complete" in are and not over, "completionTime is required for Complete jobs"),
        ("completionTime", over and "Complete" not in are, "cannot be set when there is no Complete=True condition"),
        ("completionTime", is_over_first, "completionTime cannot be set before startTime"),
        ("completionTime", over and was_over not in ("", over), "completionTime cannot be mutated"),
        ("completedIndexes", new.has("completedIndexes") and not is_indexed, "requires indexed completion mode"),
        ("failedIndexes", new.has("failedIndexes") and not is_limited, "requires backoffLimitPerIndex"),
    ):
        if is_wrong and name in after:
            new.invalid(name, after[name], detail)
        elif is_wrong:
            new.required(name, detail)
    _check_indexes(new, spec.get("completions") or 0)
    return new.findings


def _check_indexes(status: Place, completions: int) -> None:
    """Check that completed and failed indexes are disjoint intervals in increasing order, such as `1,3-5`."""
    intervals: list[tuple[int, int]] = []
    for name in ("completedIndexes", "failedIndexes") if completions else ():
        text, previous = status.text(name), -1
        for part in text.split(",") if text else ():
            limits = [parse_int64(limit) for limit in part.split("-")]
            indexes = [limit for limit in limits if limit is not None]
            problem = (
                "cannot convert to an interval of indexes" if len(limits) != len(indexes) or len(limits) > 2 else ""
            )
            if not problem and max(indexes) >= completions:
                problem = "too large index"
            if not problem and [previous, *indexes] != sorted({previous, *indexes}):
                problem = f"non-increasing order, previous: {previous}, current"
            if problem:
                status.invalid(name, text, f"error parsing {name}: {problem}: {errors.shown(part)}")
                break
            previous = indexes[-1]
            intervals.append((indexes[0], previous))
    for (_, last), (first, _) in pairwise(sorted(intervals)):
        if first <= last:
            detail = f"failedIndexes and completedIndexes overlap at index: {first}"
            status.invalid("failedIndexes", status.text("failedIndexes"), detail)


@check
def _cron_name(job: Place) -> None:
    name = job.child_or_empty("metadata").text("name")
    if len(name) > _MAX_CRON_NAME:
        job.child_or_empty("metadata").invalid("name", name, f"must be no more than {_MAX_CRON_NAME} characters")


@check
def _parsed_schedule(job: Place) -> None:
    """Refuse an unreadable schedule of a new CronJob. One with a uid was admitted by a cluster, whatever it is."""
    spec = job.child_or_empty("spec")
    schedule, zone = spec.text("schedule"), spec.text("timeZone")
    if not schedule or job.child_or_empty("metadata").text("uid"):
        return
    if spec.value.get("timeZone") == "":
        raise errors.InputError("must be nil or non-empty string", path=spec.path("timeZone"))
    parsed(times.time_zone, zone, spec.path("timeZone"))
    parsed(lambda text: times.parse_schedule(text, zone), schedule, spec.path("schedule"))


@check
def _job_of_template(template: Place) -> None:
    spec = template.child_or_empty("spec")
    if spec.has("selector"):
        spec.invalid("selector", {}, "`selector` will be auto-generated")
    if spec.flag("manualSelector"):
        spec.unsupported("manualSelector", True, ("nil", "false"))


@check
def _job_spec(spec: Place) -> None:
    """Check the length of a Job's manager, and the template, whose pods must end."""
    if len(spec.text("managedBy")) > _MAX_MANAGED_BY:
        spec.report(too_long(spec.path("managedBy"), _MAX_MANAGED_BY))
    pod = check_template(spec).child_or_empty("spec")
    policy = pod.text("restartPolicy")
    if not policy:
        pod.required("restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy == "Always":
        pod.unsupported("restartPolicy", policy, ("OnFailure", "Never"))


@check
def _completions(spec: Place) -> None:
    """Check what is only for Indexed Jobs, and that these have a number of completions."""
    if spec.text("completionMode") != "Indexed":
        for name in spec.fields_set("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            value = {} if name == "successPolicy" else spec.value[name]
            spec.invalid(name, value, "requires indexed completion mode")
        return
    completions, parallelism = spec.number("completions"), spec.number("parallelism") or 0
    if completions is None:
        spec.required("completions", "when completion mode is Indexed")
    elif completions > _MAX_INDEXES:
        spec.invalid("completions", completions, f"must be less than or equal to {_MAX_INDEXES} when Indexed")
    elif (spec.number("maxFailedIndexes") or 0) > completions:
        spec.invalid("maxFailedIndexes", spec.number("maxFailedIndexes"), "must be less than or equal to completions")
    if parallelism > _MAX_PARALLELISM:
        spec.invalid("parallelism", parallelism, f"must be less than or equal to {_MAX_PARALLELISM} when Indexed")
    if spec.has("maxFailedIndexes") and not spec.has("backoffLimitPerIndex"):
        spec.required("backoffLimitPerIndex", "when maxFailedIndexes is specified")


@check
def _failure_policy(policy: Place) -> None:
    spec = policy.owner
    if spec.child_or_empty("template", "spec").text("restartPolicy") != "Never":
        detail = "only podTemplate's restartPolicy=Never is supported when podFailurePolicy is specified"
        spec.invalid("podFailurePolicy", {}, detail)
    if spec.text("podReplacementPolicy") == "TerminatingOrFailed":
        detail = "TerminatingOrFailed is not supported when podFailurePolicy is specified"
        spec.invalid("podReplacementPolicy", "TerminatingOrFailed", detail)


@check
def _failure_rule(rule: Place) -> None:
    if rule.text("action") == "FailIndex" and not rule.owner.owner.has("backoffLimitPerIndex"):
        rule.invalid("action", "FailIndex", "requires the backoffLimitPerIndex to be set")


@check
def _failure_codes(codes: Place) -> None:
    pod = codes.owner.owner.owner.child_or_empty("template", "spec")
    containers = {place.text("name") for part in ("containers", "initContainers") for place in pod.objects(part)}
    name, values = codes.text("containerName"), codes.entries("values")
    if name and name not in containers:
        codes.invalid("containerName", name, "must be one of the container or initContainer names in the pod template")
    if not values:
        codes.invalid("values", [], "at least one value is required")
    codes.check_number("values", _MAX_EXIT_CODES)
    seen: list[object] = []
    for value in values[:_MAX_EXIT_CODES]:
        if value.value == 0 and codes.text("operator") == "In":
            value.invalid("", 0, "must not be 0 for the In operator")
        elif value.value in seen:
            value.duplicate("", value.value)
        seen.append(value.value)
    numbers = [number for number in seen if isinstance(number, int)]
    if numbers != sorted(numbers):
        codes.invalid("values", numbers, "must be ordered")
