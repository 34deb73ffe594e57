"""What makes pods, but for Jobs (pkg/apis/apps/validation, and core/validation for ReplicationControllers)."""

from __future__ import annotations

import msgspec

from podium.api.selection import LabelSelector
from podium.api.selectors import compile_label_selector
from podium.api.validation import finding
from podium.api.validation.place import Place
from podium.api.validation.pods import check_template
from podium.api.validation.selectors import check_label_selector, check_labels

_STATEFUL_POLICIES = ("OrderedReady", "Parallel")
_KEEPING = ("Delete", "Retain")
_STATUS_COUNTS = ("readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas", "fullyLabeledReplicas")


def check_replica_set(workload: Place) -> None:
    """A ReplicaSet."""
    spec = workload.child_or_empty("spec")
    spec.check_not_negative("replicas", "minReadySeconds")
    _check_selected_template(spec)
    _check_status(workload)


def check_deployment(workload: Place) -> None:
    """A Deployment, whose update must be able to make a step."""
    spec = workload.child_or_empty("spec")
    spec.check_not_negative("replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, ready = spec.number("progressDeadlineSeconds"), spec.number("minReadySeconds") or 0
    if (600 if deadline is None else deadline) <= ready:
        spec.invalid("progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    strategy = spec.child_or_empty("strategy")
    strategy.check_one_of("type", ("Recreate", "RollingUpdate"))
    rolling = strategy.child("rollingUpdate")
    if rolling is not None and strategy.text("type") == "Recreate":
        strategy.forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    elif rolling is not None:
        check_share(rolling, "maxUnavailable")
        check_share(rolling, "maxSurge", most_percent=None)
        if _is_none(rolling.value.get("maxUnavailable", "25%")) and _is_none(rolling.value.get("maxSurge", "25%")):
            rolling.invalid("maxUnavailable", rolling.value.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")
    _check_selected_template(spec)


def check_daemon_set(workload: Place) -> None:
    """A DaemonSet, which adds a pod before it takes one away, or the other way round."""
    spec = workload.child_or_empty("spec")
    spec.check_not_negative("minReadySeconds", "revisionHistoryLimit")
    strategy = spec.child_or_empty("updateStrategy")
    strategy.check_one_of("type", ("OnDelete", "RollingUpdate"))
    rolling = strategy.child("rollingUpdate")
    if rolling is not None:
        check_share(rolling, "maxUnavailable")
        check_share(rolling, "maxSurge")
        missing, extra = _is_none(rolling.value.get("maxUnavailable", 1)), _is_none(rolling.value.get("maxSurge", 0))
        if missing and extra:
            rolling.required("maxUnavailable", "cannot be 0 when maxSurge is 0")
        elif not missing and not extra:
            rolling.invalid("maxSurge", rolling.value.get("maxSurge"), "may not be set when maxUnavailable is non-zero")
    _check_selected_template(spec)


def check_stateful_set(workload: Place) -> None:
    """A StatefulSet, whose pods have the volumes of its claims too.

    kube-apiserver looks at the template only when the pods are made; here what it will refuse is told at once.
    """
    spec = workload.child_or_empty("spec")
    spec.check_not_negative("replicas", "minReadySeconds", "revisionHistoryLimit")
    spec.child_or_empty("ordinals").check_not_negative("start")
    spec.check_one_of("podManagementPolicy", _STATEFUL_POLICIES)
    strategy = spec.child_or_empty("updateStrategy")
    strategy.check_one_of("type", ("OnDelete", "RollingUpdate"))
    rolling = strategy.child("rollingUpdate")
    if rolling is not None and strategy.text("type") == "OnDelete":
        strategy.invalid("rollingUpdate", {}, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None:
        rolling.check_not_negative("partition")
        check_share(rolling, "maxUnavailable")
    for name in ("whenDeleted", "whenScaled"):
        spec.child_or_empty("persistentVolumeClaimRetentionPolicy").check_one_of(name, _KEEPING)
    claims = [place.child_or_empty("metadata").text("name") for place in spec.objects("volumeClaimTemplates")]
    _check_selected_template(spec, tuple(claims))
    _check_status(workload)


def check_replication_controller(workload: Place) -> None:
    """A ReplicationController, which selects by equalities, and by its template's labels where it names none."""
    spec = workload.child_or_empty("spec")
    spec.check_not_negative("replicas", "minReadySeconds")
    check_labels(spec, "selector")
    template = check_template(spec)
    labels = template.child_or_empty("metadata").text_mapping("labels")
    selector = spec.text_mapping("selector") or labels
    if not selector and spec.has("template"):
        spec.required("selector")
    if any(labels.get(key) != value for key, value in selector.items()):
        _report_unselected(template)
    _check_always(template)
    _check_status(workload)


def check_controller_revision(revision: Place) -> None:
    """A kept template."""
    if not revision.has("data"):
        revision.required("data", "data is mandatory")
    revision.check_not_negative("revision")


def check_share(place: Place, name: str, most_percent: int | None = 100) -> None:
    """A number of pods, or a percentage of them (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent)."""
    value = place.value.get(name)
    if not isinstance(value, str):
        place.check_not_negative(name)
        return
    digits = value.removesuffix("%")
    if digits == value or not digits.isascii() or not digits.isdigit():
        detail = "a valid percent string must be a numeric string followed by an ending '%'"
        place.invalid(name, value, detail)
    elif most_percent is not None and int(digits[:18]) > most_percent:
        place.invalid(name, value, f"must not be greater than {most_percent}%")


def selects(place: Place, name: str, labels: dict[str, str]) -> bool:
    """Whether the selector in a field matches the labels; one that cannot be read is a problem of its own."""
    try:
        selector = msgspec.convert(place.value.get(name), LabelSelector)
    except msgspec.ValidationError:
        return True
    return compile_label_selector(selector).matches(labels)


def _check_selected_template(spec: Place, volumes: tuple[str, ...] = ()) -> None:
    """The selector of a workload, and its template, which it selects."""
    check_label_selector(spec, "selector")
    selector = spec.child("selector")
    template = check_template(spec, volumes=volumes)
    if selector is None:
        spec.required("selector")
    elif not selector.value.get("matchLabels") and not selector.value.get("matchExpressions"):
        spec.invalid("selector", selector.value, "empty selector is invalid for a workload")
    elif not selects(spec, "selector", template.child_or_empty("metadata").text_mapping("labels")):
        _report_unselected(template)
    _check_always(template)


def _report_unselected(template: Place) -> None:
    metadata = template.child_or_empty("metadata")
    metadata.invalid("labels", metadata.value.get("labels", {}), "`selector` does not match template `labels`")


def _check_always(template: Place) -> None:
    """Pods that are replaced when they end restart always, and have no deadline."""
    spec = template.child_or_empty("spec")
    policy = spec.text("restartPolicy", "Always")
    if policy != "Always":
        spec.report(finding.unsupported(spec.path("restartPolicy"), policy, ("Always",)))
    if spec.has("activeDeadlineSeconds"):
        spec.forbidden(
            "activeDeadlineSeconds", "activeDeadlineSeconds in a workload whose pods run on is not Supported"
        )


def _check_status(workload: Place) -> None:
    status = workload.child_or_empty("status")
    status.check_not_negative("replicas", "observedGeneration", *_STATUS_COUNTS)


def _is_none(share: object) -> bool:
    """Whether the share is no pod, however many are wanted."""
    return share in (0, "0%")
