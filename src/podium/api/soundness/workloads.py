"""What workloads must be like (pkg/apis/apps/validation, pkg/apis/batch/validation)."""

from __future__ import annotations

from podium.api.checks import check, check_annotations, check_count, check_not_negative, check_share, check_time
from podium.api.cron import parse_schedule, time_zone
from podium.api.errors import InputError
from podium.api.names import subdomain_problem
from podium.api.selection import LabelSelector
from podium.api.selectors import compile_label_selector
from podium.api.soundness.pod import check_pod_spec
from podium.api.soundness.selection import check_label_selector
from podium.api.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    JobSpec,
    PodFailurePolicyRule,
    PodTemplate,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    Share,
    StatefulSet,
)

_MAX_RULES = 20
_MAX_INDEXED_COMPLETIONS = 1_000_000


def check_replica_set(workload: ReplicaSet) -> None:
    """A ReplicaSet."""
    _check_replicas(workload.spec)


def check_deployment(workload: Deployment) -> None:
    """A Deployment, whose update must be able to make a step."""
    spec = workload.spec
    _check_replicas(spec)
    check_not_negative(spec.revision_history_limit, ".spec.revisionHistoryLimit")
    rolling, path = spec.strategy.rolling_update, ".spec.strategy.rollingUpdate"
    if rolling is None:
        return
    check_share(rolling.max_unavailable, f"{path}.maxUnavailable")
    check_share(rolling.max_surge, f"{path}.maxSurge", most_percent=None)
    if _is_none(rolling.max_unavailable) and _is_none(rolling.max_surge):
        raise InputError("may not be 0 when maxSurge is 0: no pod could be exchanged", path=f"{path}.maxUnavailable")


def check_stateful_set(workload: StatefulSet) -> None:
    """A StatefulSet with its claim templates, which have names and no namespaces."""
    spec = workload.spec
    _check_replicas(spec)
    check_not_negative(spec.ordinals.start, ".spec.ordinals.start")
    check_not_negative(spec.revision_history_limit, ".spec.revisionHistoryLimit")
    check_not_negative(spec.update_strategy.rolling_update.partition, ".spec.updateStrategy.rollingUpdate.partition")
    check_count(spec.volume_claim_templates, ".spec.volumeClaimTemplates")
    for index, claim in enumerate(spec.volume_claim_templates):
        check(subdomain_problem(claim.metadata.name), f".spec.volumeClaimTemplates[{index}].metadata.name")


def check_daemon_set(workload: DaemonSet) -> None:
    """A DaemonSet."""
    spec = workload.spec
    check_not_negative(spec.min_ready_seconds, ".spec.minReadySeconds")
    check_not_negative(spec.revision_history_limit, ".spec.revisionHistoryLimit")
    rolling = spec.update_strategy.rolling_update
    check_share(rolling.max_unavailable, ".spec.updateStrategy.rollingUpdate.maxUnavailable")
    _check_selection(spec.selector, spec.template)


def check_replication_controller(workload: ReplicationController) -> None:
    """A ReplicationController."""
    check_not_negative(workload.spec.replicas, ".spec.replicas")
    check_not_negative(workload.spec.min_ready_seconds, ".spec.minReadySeconds")
    _check_template(workload.spec.template)


def check_job(job: Job) -> None:
    """A Job, with the time in its status that its deadline counts from."""
    _check_job_spec(job.spec)
    check_time(job.status.start_time, ".status.startTime")


def check_cron_job(workload: CronJob) -> None:
    """A CronJob. One with a uid was let into a cluster once, whatever its schedule."""
    spec = workload.spec
    if spec.schedule and not workload.metadata.uid:
        try:
            time_zone(spec.time_zone or "")
        except ValueError as error:
            raise InputError(str(error), path=".spec.timeZone") from None
        try:
            parse_schedule(spec.schedule, spec.time_zone or "")
        except ValueError as error:
            raise InputError(str(error), path=".spec.schedule") from None
    check_not_negative(spec.starting_deadline_seconds, ".spec.startingDeadlineSeconds")
    check_not_negative(spec.successful_jobs_history_limit, ".spec.successfulJobsHistoryLimit")
    check_not_negative(spec.failed_jobs_history_limit, ".spec.failedJobsHistoryLimit")
    check_time(workload.status.last_schedule_time, ".status.lastScheduleTime")
    try:
        _check_job_spec(spec.job_template.spec)
    except InputError as error:
        raise InputError(error.problem, path=f".spec.jobTemplate{error.path}") from None


def _check_job_spec(spec: JobSpec) -> None:
    check_not_negative(spec.parallelism, ".spec.parallelism")
    check_not_negative(spec.completions, ".spec.completions")
    check_not_negative(spec.backoff_limit, ".spec.backoffLimit")
    check_not_negative(spec.active_deadline_seconds, ".spec.activeDeadlineSeconds")
    check_label_selector(spec.selector, ".spec.selector")
    if spec.completion_mode == "Indexed":
        _check_indexed(spec)
    if spec.pod_failure_policy is not None:
        _check_failure_policy(spec, spec.pod_failure_policy.rules)
    _check_template(spec.template)


def _check_replicas(spec: ReplicaSetSpec) -> None:
    check_not_negative(spec.replicas, ".spec.replicas")
    check_not_negative(spec.min_ready_seconds, ".spec.minReadySeconds")
    _check_selection(spec.selector, spec.template)


def _check_selection(selector: LabelSelector | None, template: PodTemplate) -> None:
    check_label_selector(selector, ".spec.selector")
    _check_template(template)
    # A workload that does not select what it makes would make pods without end.
    if not compile_label_selector(selector).matches(template.metadata.labels):
        raise InputError(
            "does not select the pods of the template; it must match .spec.template.metadata.labels",
            path=".spec.selector",
        )


def _check_template(template: PodTemplate) -> None:
    check_annotations(template.metadata.annotations, ".spec.template.metadata.annotations")
    check_pod_spec(template.spec, ".spec.template.spec")


def _check_indexed(spec: JobSpec) -> None:
    if spec.completions is None:
        raise InputError("is missing; an Indexed Job must say how many indexes it has", path=".spec.completions")
    if spec.completions > _MAX_INDEXED_COMPLETIONS:
        problem = f"{spec.completions} is out of range; an Indexed Job has at most {_MAX_INDEXED_COMPLETIONS}"
        raise InputError(problem, path=".spec.completions")


def _check_failure_policy(spec: JobSpec, rules: tuple[PodFailurePolicyRule, ...]) -> None:
    path = ".spec.podFailurePolicy"
    if spec.template.spec.restart_policy != "Never":
        raise InputError("is only taken where .spec.template.spec.restartPolicy is Never", path=path)
    if spec.pod_replacement_policy == "TerminatingOrFailed":
        problem = "must be Failed where there is a podFailurePolicy, which judges pods that have failed"
        raise InputError(problem, path=".spec.podReplacementPolicy")
    check_count(rules, f"{path}.rules", _MAX_RULES)
    for index, rule in enumerate(rules):
        _check_rule(rule, f"{path}.rules[{index}]")


def _check_rule(rule: PodFailurePolicyRule, path: str) -> None:
    if (rule.on_exit_codes is None) == (not rule.on_pod_conditions):
        raise InputError("must have one of onExitCodes and onPodConditions", path=path)
    if rule.on_exit_codes is None:
        return
    codes, place = rule.on_exit_codes, f"{path}.onExitCodes.values"
    if not codes.values:
        raise InputError("is empty; write at least one exit code", path=place)
    check_count(codes.values, place, 255)
    if codes.operator == "In" and 0 in codes.values:
        raise InputError("0 is no failure; remove it", path=place)


def _is_none(share: Share) -> bool:
    """Whether the share is no pod, however many are wanted."""
    return share == 0 or (isinstance(share, str) and int(share.removesuffix("%")) == 0)
