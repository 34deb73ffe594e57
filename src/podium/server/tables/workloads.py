"""How workloads are shown (printDeployment, printReplicaSet, printJob and so on)."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import (
    NONE,
    UNSET,
    age,
    condition,
    containers,
    count,
    entries,
    human_duration,
    label_selector,
    labels,
    name,
    number,
    since,
    text,
    time_at,
    value,
)
from podium.server.tables.column import AGE, CONTAINERS, IMAGES, NAME, SELECTOR, Cells, Column, Printer

_READY = Column("Ready", "How many pods are ready, of those wanted.")
_REPLICA_COLUMNS = (
    NAME,
    Column("Desired", "How many pods are wanted.", "integer"),
    Column("Current", "How many pods there are.", "integer"),
    Column("Ready", "How many pods are ready.", "integer"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
_DEPLOYMENT_COLUMNS = (
    NAME,
    _READY,
    Column("Up-to-date", "How many pods are of the present template."),
    Column("Available", "How many pods have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
_DAEMON_SET_COLUMNS = (
    NAME,
    Column("Desired", "How many nodes should have a pod.", "integer"),
    Column("Current", "How many nodes have a pod.", "integer"),
    Column("Ready", "How many nodes have a pod that is ready.", "integer"),
    Column("Up-to-date", "How many nodes have a pod of the present template.", "integer"),
    Column("Available", "How many nodes have a pod that has been ready for long enough.", "integer"),
    Column("Node Selector", "Which nodes should have a pod."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
_JOB_COLUMNS = (
    NAME,
    Column("Status", "Whether the job runs, or how it ended."),
    Column("Completions", "How many pods have succeeded, of those wanted."),
    Column("Duration", "How long the job took, or has taken so far."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
_CRON_JOB_COLUMNS = (
    NAME,
    Column("Schedule", "When jobs are created, as cron writes it."),
    Column("Timezone", "The time zone of the schedule."),
    Column("Suspend", "Whether no jobs are created for now.", "boolean"),
    Column("Active", "How many of the jobs run.", "integer"),
    Column("Last Schedule", "How long ago a job was created last."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
_REVISION_COLUMNS = (
    NAME,
    Column("Controller", "Whose revision it is."),
    Column("Revision", "The number of the revision."),
    AGE,
)
# The conditions of a job that say how it is, the most telling first.
_ENDED = ("Complete", "Failed")
_HELD_UP = ("Suspended", "FailureTarget")


def _template(raw: Raw) -> tuple[str, str]:
    return containers(value(raw, "spec", "template", "spec"))


def _replica_set(raw: Raw, now: int) -> Cells:
    return (*_replicas(raw, now), *_template(raw), label_selector(value(raw, "spec", "selector")))


def _replication_controller(raw: Raw, now: int) -> Cells:
    return (*_replicas(raw, now), *_template(raw), labels(value(raw, "spec", "selector")))


def _replicas(raw: Raw, now: int) -> Cells:
    status = value(raw, "status")
    wanted = number(raw, "spec", "replicas")
    return name(raw), wanted, number(status, "replicas"), number(status, "readyReplicas"), age(raw, now)


def _ready(raw: Raw) -> str:
    return f"{number(raw, 'status', 'readyReplicas')}/{number(raw, 'spec', 'replicas')}"


def _deployment(raw: Raw, now: int) -> Cells:
    status = value(raw, "status")
    selector = label_selector(value(raw, "spec", "selector"))
    return (
        name(raw),
        _ready(raw),
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        age(raw, now),
        *_template(raw),
        selector,
    )


def _stateful_set(raw: Raw, now: int) -> Cells:
    return (name(raw), _ready(raw), age(raw, now), *_template(raw))


def _daemon_set(raw: Raw, now: int) -> Cells:
    counted = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return (
        name(raw),
        *(number(raw, "status", field) for field in counted),
        labels(value(raw, "spec", "template", "spec", "nodeSelector")),
        age(raw, now),
        *_template(raw),
        label_selector(value(raw, "spec", "selector")),
    )


def _job(raw: Raw, now: int) -> Cells:
    selector = label_selector(value(raw, "spec", "selector"))
    return (
        name(raw),
        _job_status(raw),
        _completions(raw),
        _duration(raw, now),
        age(raw, now),
        *_template(raw),
        selector,
    )


def _job_status(raw: Raw) -> str:
    ended = next((type_ for type_ in _ENDED if condition(raw, type_) == "True"), "")
    if ended:
        return ended
    if value(raw, "metadata", "deletionTimestamp"):
        return "Terminating"
    return next((type_ for type_ in _HELD_UP if condition(raw, type_) == "True"), "Running")


def _completions(raw: Raw) -> str:
    succeeded, wanted = number(raw, "status", "succeeded"), value(raw, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = number(raw, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(raw: Raw, now: int) -> str:
    start, end = (time_at(raw, "status", field) for field in ("startTime", "completionTime"))
    return "" if start is None else human_duration((now if end is None else end) - start)


def _cron_job(raw: Raw, now: int) -> Cells:
    suspend = value(raw, "spec", "suspend")
    job = value(raw, "spec", "jobTemplate", "spec")
    last = value(raw, "status", "lastScheduleTime")
    return (
        name(raw),
        text(raw, "spec", "schedule"),
        text(raw, "spec", "timeZone", default=NONE),
        UNSET if suspend is None else "True" if suspend else "False",
        count(raw, "status", "active"),
        NONE if last is None else since(raw, now, "status", "lastScheduleTime"),
        age(raw, now),
        *containers(value(job, "template", "spec")),
        label_selector(value(job, "selector")),
    )


def _revision(raw: Raw, now: int) -> Cells:
    owners = entries(raw, "metadata", "ownerReferences")
    controller = next((_controller(owner) for owner in owners if owner.get("controller") is True), NONE)
    return name(raw), controller, number(raw, "revision"), age(raw, now)


def _controller(owner: Raw) -> str:
    group = text(owner, "apiVersion").rpartition("/")[0]
    kind = text(owner, "kind").lower()
    return f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{text(owner, 'name')}"


PRINTERS = {
    ("", "ReplicationController"): Printer(_REPLICA_COLUMNS, _replication_controller),
    ("apps", "ControllerRevision"): Printer(_REVISION_COLUMNS, _revision),
    ("apps", "DaemonSet"): Printer(_DAEMON_SET_COLUMNS, _daemon_set),
    ("apps", "Deployment"): Printer(_DEPLOYMENT_COLUMNS, _deployment),
    ("apps", "ReplicaSet"): Printer(_REPLICA_COLUMNS, _replica_set),
    ("apps", "StatefulSet"): Printer((NAME, _READY, AGE, CONTAINERS, IMAGES), _stateful_set),
    ("batch", "CronJob"): Printer(_CRON_JOB_COLUMNS, _cron_job),
    ("batch", "Job"): Printer(_JOB_COLUMNS, _job),
}
