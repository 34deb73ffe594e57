"""What the store answers when it refuses: a Kubernetes Status (meta/v1) with its code, reason, message and details."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podium.api.errors import InputError, MalformedError, PodiumError, escape
from podium.api.validation.finding import Finding
from podium.store.api_resource import APIResource

_MAX_MESSAGE = 2_000


class StoreError(PodiumError):
    """A refused request; nothing was written.

    `code` is the HTTP status, `reason` the Status reason, `message` is for people, `details` say which object it is
    about, with the causes by field. `status_message` is what stands in the Status where kube-apiserver has words of its
    own, which clients of the API show; "" is the message.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        status_message: str = "",
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = escape(message, _MAX_MESSAGE)
        super().__init__(self.message)
        self.details = dict(details or {})
        lines = (escape(line, _MAX_MESSAGE) for line in status_message.splitlines())
        self.status_message = "\n".join(lines) or self.message

    def reworded(self, words: Callable[[str], str]) -> StoreError:
        """The same refusal, with its fields named in other words."""
        causes = [{name: words(text) for name, text in cause.items()} for cause in self.details.get("causes", ())]
        details = {**self.details, "causes": causes} if causes else self.details
        return StoreError(self.code, self.reason, words(self.message), details, words(self.status_message))

    def to_dict(self) -> dict[str, Any]:
        """The answer as the API gives it."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.status_message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {name: value for name, value in status.items() if value or name == "metadata"}


def not_found(resource: APIResource, key: str) -> StoreError:
    """No object of that kind and key."""
    said = f"{_named(resource, key)} not found"
    return StoreError(404, "NotFound", f"{resource.kind} {key} not found", _about(resource, key), said)


def unknown_kind(name: str) -> StoreError:
    """No such kind, or no such subresource of it."""
    said = "the server could not find the requested resource"
    return StoreError(404, "NotFound", f"kind {name} not found", status_message=said)


def already_exists(resource: APIResource, key: str) -> StoreError:
    """The name is taken."""
    said = f"{_named(resource, key)} already exists"
    return StoreError(409, "AlreadyExists", f"{resource.kind} {key} already exists", _about(resource, key), said)


def conflict(resource: APIResource, key: str, problem: str, said: str = "") -> StoreError:
    """The object is not what the writer thinks it is; `said` is how kube-apiserver would put it."""
    told = f"Operation cannot be fulfilled on {_named(resource, key)}: {said or problem}"
    return StoreError(409, "Conflict", f"{resource.kind} {key}: {problem}", _about(resource, key), told)


def forbidden(resource: APIResource, key: str, problem: str, cause: str = "") -> StoreError:
    """Admission does not let the object in; `cause` is the reason of the one cause, "" for none."""
    details = _about(resource, key)
    if cause:
        details["causes"] = [{"reason": cause, "message": problem}]
    said = f"{_named(resource, key)} is forbidden: {problem}"
    return StoreError(403, "Forbidden", f"{resource.kind} {key} is forbidden: {problem}", details, said)


def invalid(
    resource: APIResource, key: str, problem: str, path: str = "", cause: str = "FieldValueInvalid"
) -> StoreError:
    """The object breaks a rule of its kind, in the field at `path` (`.spec.replicas`); "" is the object itself."""
    field = path.removeprefix(".")
    details = {
        "name": _name(key),
        "group": resource.group,
        "kind": resource.kind,
        "causes": [{"reason": cause, "message": problem, "field": field}],
    }
    place = f"{field}: " if field else ""
    said = f"{_kind(resource)} {_quoted(key)} is invalid: {place}{problem}"
    return StoreError(422, "Invalid", f"{resource.kind} {key} is invalid: {place}{problem}", details, said)


def invalid_fields(resource: APIResource, key: str, findings: Sequence[Finding]) -> StoreError:
    """The object breaks rules of its kind: all of them, each with its field."""
    details = {
        "name": _name(key),
        "group": resource.group,
        "kind": resource.kind,
        "causes": [
            {"reason": finding.cause, "message": finding.message, "field": finding.path.removeprefix(".")}
            for finding in findings
        ],
    }
    listed = ", ".join(str(finding).removeprefix(".") for finding in findings)
    listed = f"[{listed}]" if len(findings) > 1 else listed
    said = f"{_kind(resource)} {_quoted(key)} is invalid: {listed}"
    return StoreError(422, "Invalid", f"{resource.kind} {key} is invalid: {listed}", details, said)


def unreadable(resource: APIResource, key: str, error: InputError) -> StoreError:
    """What reading and validation found: 400 for a value that cannot be read, 422 for one that is not right."""
    if isinstance(error, MalformedError):
        return bad_request(str(error.located(object=f"{resource.kind} {key}")))
    return invalid(resource, key, error.problem, error.path)


def bad_request(problem: str) -> StoreError:
    """The request cannot be understood."""
    return StoreError(400, "BadRequest", problem)


def invalid_options(kind: str, field: str, problem: str, cause: str = "FieldValueForbidden") -> StoreError:
    """The request's options contradict one another; `kind` is that of the options, such as ListOptions."""
    causes = [{"reason": cause, "message": problem, "field": field}]
    details = {"group": "meta.k8s.io", "kind": kind, "causes": causes}
    return StoreError(422, "Invalid", f"{kind} is invalid: {field}: {problem}", details)


def too_many_requests(
    resource: APIResource, key: str, problem: str, cause: str, retry_after_seconds: int = 0
) -> StoreError:
    """The object cannot be disrupted now; `cause` is what is used up, and 0 seconds leave open when it will not be."""
    details = _about(resource, key)
    details |= {"causes": [{"reason": cause, "message": problem}], "retryAfterSeconds": retry_after_seconds}
    # What kubectl drain shows; the budget stands in the cause.
    is_budget = cause == "DisruptionBudget"
    said = "Cannot evict pod as it would violate the pod's disruption budget." if is_budget else ""
    message = f"{resource.kind} {key} cannot be disrupted now: {problem}"
    return StoreError(429, "TooManyRequests", message, details, said)


def expired(version: int, oldest: int) -> StoreError:
    """What happened after `version` is no longer known in full; `oldest` is the first version of which it is."""
    return StoreError(410, "Expired", f"too old resource version: {version} ({oldest})")


def too_large(version: int, current: int) -> StoreError:
    """The version is still to come (storage.NewTooLargeResourceVersionError)."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return StoreError(504, "Timeout", f"too large resource version: {version}, current: {current}", details)


def _about(resource: APIResource, key: str) -> dict[str, Any]:
    return {"name": _name(key), "group": resource.group, "kind": resource.plural}


def _named(resource: APIResource, key: str) -> str:
    """The object as kube-apiserver names it in its messages: `pods "web"`, `deployments.apps "web"`."""
    return f"{resource.qualified} {_quoted(key)}"


def _kind(resource: APIResource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def _quoted(key: str) -> str:
    return f'"{_name(key)}"'


def _name(key: str) -> str:
    return key.rpartition("/")[2]
