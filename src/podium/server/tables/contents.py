"""How what pods are given, and who may do what, is shown: ConfigMaps, Secrets, accounts, roles and their bindings."""

from __future__ import annotations

from podium.api.meta import Raw
from podium.server.tables.cells import NONE, age, condition, count, entries, human_duration, name, number, text, value
from podium.server.tables.column import AGE, NAME, Cells, Column, Printer

_SECOND = 10**9

_DATA = Column("Data", "How many entries there are.")
_SECRET_COLUMNS = (NAME, Column("Type", "What the entries are for."), _DATA, AGE)
_ACCOUNT_COLUMNS = (NAME, Column("Secrets", "How many secrets belong to the account."), AGE)
_BINDING_COLUMNS = (
    NAME,
    Column("Role", "The role that is given."),
    AGE,
    Column("Users", "The users that have it.", priority=1),
    Column("Groups", "The groups that have it.", priority=1),
    Column("ServiceAccounts", "The service accounts that have it.", priority=1),
)
_REQUEST_COLUMNS = (
    NAME,
    AGE,
    Column("SignerName", "Who is to sign."),
    Column("Requestor", "Who asks."),
    Column("RequestedDuration", "For how long."),
    Column("Condition", "Whether it was approved, and the certificate issued."),
)
_WEBHOOK_COLUMNS = (NAME, Column("Webhooks", "How many webhooks there are.", "integer"), AGE)
_SERVICE_COLUMNS = (
    NAME,
    Column("Service", "Who serves the version."),
    Column("Available", "Whether it is served."),
    AGE,
)
_FLOW_COLUMNS = (
    NAME,
    Column("PriorityLevel", "The level of requests of the flow."),
    Column("MatchingPrecedence", "Which flow counts where several fit: the one with the lowest number."),
    Column("DistinguisherMethod", "What tells flows apart."),
    AGE,
    Column("MissingPL", "Whether there is no such level."),
)
_LEVEL_COLUMNS = (
    NAME,
    Column("Type", "Whether requests of the level are limited."),
    Column("NominalConcurrencyShares", "The level's share of what is answered at a time."),
    Column("Queues", "How many queues the level has."),
    Column("HandSize", "How many queues a flow may use."),
    Column("QueueLengthLimit", "How many requests wait in a queue."),
    AGE,
)
_SCALER_COLUMNS = (
    NAME,
    Column("Reference", "What is scaled."),
    Column("Targets", "What is measured, and what it is to be."),
    Column("MinPods", "How many pods there are at least."),
    Column("MaxPods", "How many pods there are at most."),
    Column("Replicas", "How many pods there are."),
    AGE,
)


def _config_map(raw: Raw, now: int) -> Cells:
    return name(raw), count(raw, "data") + count(raw, "binaryData"), age(raw, now)


def _secret(raw: Raw, now: int) -> Cells:
    return name(raw), text(raw, "type", default="Opaque"), count(raw, "data"), age(raw, now)


def _account(raw: Raw, now: int) -> Cells:
    return name(raw), count(raw, "secrets"), age(raw, now)


def _binding(raw: Raw, now: int) -> Cells:
    role = f"{text(raw, 'roleRef', 'kind')}/{text(raw, 'roleRef', 'name')}"
    subjects = entries(raw, "subjects")
    users, groups = (
        ", ".join(text(subject, "name") for subject in subjects if subject.get("kind") == kind)
        for kind in ("User", "Group")
    )
    accounts = ", ".join(
        f"{text(subject, 'namespace')}/{text(subject, 'name')}"
        for subject in subjects
        if subject.get("kind") == "ServiceAccount"
    )
    return name(raw), role, age(raw, now), users, groups, accounts


def _request(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    seconds = value(spec, "expirationSeconds")
    return (
        name(raw),
        age(raw, now),
        text(spec, "signerName", default=NONE),
        text(spec, "username"),
        human_duration(seconds * _SECOND) if type(seconds) is int else NONE,
        _request_status(raw),
    )


def _request_status(raw: Raw) -> str:
    found = {text(one, "type") for one in entries(raw, "status", "conditions")}
    status = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    failed = ",Failed" if "Failed" in found else ""
    issued = ",Issued" if text(raw, "status", "certificate") else ""
    return f"{status}{failed}{issued}"


def _webhooks(raw: Raw, now: int) -> Cells:
    return name(raw), count(raw, "webhooks"), age(raw, now)


def _api_service(raw: Raw, now: int) -> Cells:
    service = value(raw, "spec", "service")
    served_by = "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}"
    available = next(
        (one for one in entries(raw, "status", "conditions") if one.get("type") == "Available"), {"status": "Unknown"}
    )
    reason = text(available, "reason")
    is_told = text(available, "status") not in ("True", "Unknown") and reason
    return name(raw), served_by, f"{text(available, 'status')}{f' ({reason})' if is_told else ''}", age(raw, now)


def _flow(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    return (
        name(raw),
        text(spec, "priorityLevelConfiguration", "name"),
        number(spec, "matchingPrecedence"),
        text(spec, "distinguisherMethod", "type", default=NONE),
        age(raw, now),
        condition(raw, "Dangling") or "?",
    )


def _level(raw: Raw, now: int) -> Cells:
    limited = value(raw, "spec", "limited")
    queuing = value(limited, "limitResponse", "queuing")
    return (
        name(raw),
        text(raw, "spec", "type"),
        text(limited, "nominalConcurrencyShares", default=NONE),
        *(text(queuing, field, default=NONE) for field in ("queues", "handSize", "queueLengthLimit")),
        age(raw, now),
    )


def _scaler(raw: Raw, now: int) -> Cells:
    spec = value(raw, "spec")
    return (
        name(raw),
        f"{text(spec, 'scaleTargetRef', 'kind')}/{text(spec, 'scaleTargetRef', 'name')}",
        _targets(raw),
        text(spec, "minReplicas", default="<unset>"),
        number(spec, "maxReplicas"),
        number(raw, "status", "currentReplicas"),
        age(raw, now),
    )


def _targets(raw: Raw) -> str:
    """What is measured of what is wanted, for the first two metrics (formatHPAMetrics); autoscaling/v1 has one."""
    wanted = text(raw, "spec", "targetCPUUtilizationPercentage")
    if wanted:
        current = text(raw, "status", "currentCPUUtilizationPercentage")
        return f"cpu: {f'{current}%' if current else '<unknown>'}/{wanted}%"
    metrics = entries(raw, "spec", "metrics")
    measured = entries(raw, "status", "currentMetrics")
    found = [_target(metric, measured[index] if index < len(measured) else {}) for index, metric in enumerate(metrics)]
    shown = ", ".join(found[:2])
    return (f"{shown} + {len(found) - 2} more..." if len(found) > 2 else shown) or NONE


def _target(metric: Raw, measured: Raw) -> str:
    type_ = text(metric, "type")
    part = f"{type_[:1].lower()}{type_[1:]}"
    wanted, current = value(metric, part, "target"), value(measured, part, "current")
    label = f"{text(metric, part, 'name')}: " if part in ("resource", "containerResource") else ""
    for field, after in (("averageValue", ""), ("averageUtilization", "%"), ("value", "")):
        if value(wanted, field) is not None:
            found = text(current, field)
            return f"{label}{f'{found}{after}' if found else '<unknown>'}/{text(wanted, field)}{after}"
    return f"{label}<unknown>/<auto>"


PRINTERS = {
    ("", "ConfigMap"): Printer((NAME, _DATA, AGE), _config_map),
    ("", "Secret"): Printer(_SECRET_COLUMNS, _secret),
    ("", "ServiceAccount"): Printer(_ACCOUNT_COLUMNS, _account),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): Printer(_WEBHOOK_COLUMNS, _webhooks),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): Printer(_WEBHOOK_COLUMNS, _webhooks),
    ("apiregistration.k8s.io", "APIService"): Printer(_SERVICE_COLUMNS, _api_service),
    ("autoscaling", "HorizontalPodAutoscaler"): Printer(_SCALER_COLUMNS, _scaler),
    ("certificates.k8s.io", "CertificateSigningRequest"): Printer(_REQUEST_COLUMNS, _request),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): Printer(_FLOW_COLUMNS, _flow),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Printer(_LEVEL_COLUMNS, _level),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Printer(_BINDING_COLUMNS, _binding),
    ("rbac.authorization.k8s.io", "RoleBinding"): Printer(_BINDING_COLUMNS, _binding),
}
