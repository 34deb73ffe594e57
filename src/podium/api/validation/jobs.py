"""Jobs, and what makes them (pkg/apis/batch/validation)."""

from __future__ import annotations

from podium.api.names import label_name_problem, subdomain_problem
from podium.api.validation import finding
from podium.api.validation.place import Place
from podium.api.validation.pods import check_template
from podium.api.validation.selectors import check_label_selector
from podium.api.validation.workloads import selects

_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MAX_PARALLELISM = 100_000
_MAX_INDEXES = 1_000_000
_MAX_RULES = 20
_MAX_EXIT_CODES = 255
_MAX_CONDITIONS = 20
_MAX_MANAGED_BY = 63
_MAX_CRON_NAME = 52
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def check_job(job: Place) -> None:
    """A Job; its selector is made with it, unless `manualSelector` is true."""
    metadata, spec = job.child_or_empty("metadata"), job.child_or_empty("spec")
    check_label_selector(spec, "selector")
    template = _check_job_spec(spec)
    labels = template.child_or_empty("metadata").text_mapping("labels")
    is_stored = bool(metadata.text("uid"))
    if spec.flag("manualSelector") or is_stored:
        if not spec.has("selector"):
            if not is_stored:
                spec.required("selector")
        elif not selects(spec, "selector", labels):
            template.child_or_empty("metadata").invalid("labels", {}, "`selector` does not match template `labels`")
    if spec.text("completionMode") == "Indexed" and (spec.number("completions") or 0) > 0:
        name = f"{metadata.text('name')}-{(spec.number('completions') or 1) - 1}"
        if metadata.text("name") and label_name_problem(name) is not None:
            metadata.invalid(
                "name", metadata.text("name"), f"will not able to create pod with invalid DNS label: {name}"
            )
    job.child_or_empty("status").check_not_negative("active", "succeeded", "failed", "ready", "terminating")


def check_cron_job(job: Place) -> None:
    """A CronJob, whose Jobs have longer names than it has; the schedule's form is for who plays it."""
    metadata, spec = job.child_or_empty("metadata"), job.child_or_empty("spec")
    if len(metadata.text("name")) > _MAX_CRON_NAME:
        metadata.invalid("name", metadata.text("name"), f"must be no more than {_MAX_CRON_NAME} characters")
    spec.require("schedule")
    if "TZ" in spec.text("schedule"):
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        spec.invalid("schedule", spec.text("schedule"), detail)
    spec.check_one_of("concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    spec.check_not_negative("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    template = spec.child_or_empty("jobTemplate").child_or_empty("spec")
    if template.has("selector"):
        template.invalid("selector", {}, "`selector` will be auto-generated")
    if template.flag("manualSelector"):
        template.report(finding.unsupported(template.path("manualSelector"), True, ("nil", "false")))
    _check_job_spec(template)


def _check_job_spec(spec: Place) -> Place:
    """What a Job does; returns its template."""
    spec.check_not_negative(*_COUNTS)
    spec.check_one_of("completionMode", _MODES)
    if spec.text("completionMode") == "Indexed":
        _check_indexed(spec)
    else:
        _check_not_indexed(spec)
    spec.check_one_of("podReplacementPolicy", _REPLACEMENTS)
    manager = spec.text("managedBy")
    if len(manager) > _MAX_MANAGED_BY:
        spec.report(finding.too_long(spec.path("managedBy"), _MAX_MANAGED_BY))
    elif manager:
        prefix, slash, name = manager.partition("/")
        if not slash or not name or subdomain_problem(prefix) is not None:
            spec.invalid("managedBy", manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    template = check_template(spec)
    policy = template.child_or_empty("spec").text("restartPolicy")
    if not policy:
        template.child_or_empty("spec").required("restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy == "Always":
        place = template.child_or_empty("spec")
        place.report(finding.unsupported(place.path("restartPolicy"), policy, ("OnFailure", "Never")))
    _check_failure_policy(spec, policy)
    return template


def _check_indexed(spec: Place) -> None:
    completions, parallelism = spec.number("completions"), spec.number("parallelism") or 0
    if completions is None:
        spec.required("completions", "when completion mode is Indexed")
    elif completions > _MAX_INDEXES:
        spec.invalid("completions", completions, f"must be less than or equal to {_MAX_INDEXES} when Indexed")
    elif (spec.number("maxFailedIndexes") or 0) > completions:
        detail = "must be less than or equal to completions"
        spec.invalid("maxFailedIndexes", spec.number("maxFailedIndexes"), detail)
    if parallelism > _MAX_PARALLELISM:
        spec.invalid("parallelism", parallelism, f"must be less than or equal to {_MAX_PARALLELISM} when Indexed")
    if spec.has("maxFailedIndexes") and not spec.has("backoffLimitPerIndex"):
        spec.required("backoffLimitPerIndex", "when maxFailedIndexes is specified")


def _check_not_indexed(spec: Place) -> None:
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.has(name):
            spec.invalid(name, spec.value[name], "requires indexed completion mode")
    if spec.has("successPolicy"):
        spec.invalid("successPolicy", {}, "requires indexed completion mode")


def _check_failure_policy(spec: Place, restart_policy: str) -> None:
    policy = spec.child("podFailurePolicy")
    if policy is None:
        return
    if restart_policy != "Never":
        detail = "only podTemplate's restartPolicy=Never is supported when podFailurePolicy is specified"
        spec.invalid("podFailurePolicy", {}, detail)
    if spec.text("podReplacementPolicy") == "TerminatingOrFailed":
        detail = "TerminatingOrFailed is not supported when podFailurePolicy is specified"
        spec.invalid("podReplacementPolicy", "TerminatingOrFailed", detail)
    rules = policy.objects("rules")
    if len(rules) > _MAX_RULES:
        policy.report(finding.too_many(policy.path("rules"), rules, _MAX_RULES))
    containers = _container_names(spec)
    for rule in rules[:_MAX_RULES]:
        _check_rule(rule, containers, spec.has("backoffLimitPerIndex"))


def _container_names(spec: Place) -> set[str]:
    pod = spec.child_or_empty("template").child_or_empty("spec")
    return {place.text("name") for part in ("containers", "initContainers") for place in pod.objects(part)}


def _check_rule(rule: Place, containers: set[str], counts_by_index: bool) -> None:
    rule.require("action")
    rule.check_one_of("action", ("Count", "FailIndex", "FailJob", "Ignore"))
    if rule.text("action") == "FailIndex" and not counts_by_index:
        rule.invalid("action", "FailIndex", "requires the backoffLimitPerIndex to be set")
    codes, conditions = rule.child("onExitCodes"), rule.objects("onPodConditions")
    if codes is not None and conditions:
        rule.invalid("", {}, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not conditions:
        rule.invalid("", {}, "specifying one of OnExitCodes and OnPodConditions is required")
    if len(conditions) > _MAX_CONDITIONS:
        rule.report(finding.too_many(rule.path("onPodConditions"), conditions, _MAX_CONDITIONS))
    for condition in conditions:
        condition.require("type")
        condition.check_one_of("status", ("False", "True", "Unknown"))
    if codes is not None:
        _check_exit_codes(codes, containers)


def _check_exit_codes(codes: Place, containers: set[str]) -> None:
    codes.require("operator")
    codes.check_one_of("operator", ("In", "NotIn"))
    name, values = codes.text("containerName"), codes.entries("values")
    if name and name not in containers:
        codes.invalid("containerName", name, "must be one of the container or initContainer names in the pod template")
    if not values:
        codes.invalid("values", [], "at least one value is required")
    elif len(values) > _MAX_EXIT_CODES:
        codes.report(finding.too_many(codes.path("values"), values, _MAX_EXIT_CODES))
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
