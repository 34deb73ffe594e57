"""The store's refusals: a Kubernetes Status (meta/v1) with code, reason, message and details."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podium.api.errors import InputError, MalformedError, PodiumError, escape
from podium.api.meta import MAX_OBJECT_BYTES
from podium.api.validation.findings import Finding

if TYPE_CHECKING:
    from podium.store.api_resources import APIResource

_MAX_MESSAGE = 2_000


class StoreError(PodiumError):
    """A refused request; nothing was written.

    `code` is the HTTP status, `reason` the Status reason, `message` is for people, `details` name the object, with the
    causes by field. `status_message` is the message in the Status if kube-apiserver has its own wording, which API
    clients show; "" means `message`.
    """

    continue_token = ""
    """The token that continues a list whose version is forgotten."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None, status_message: str = ""
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = escape(message, _MAX_MESSAGE)
        super().__init__(self.message)
        self.details = dict(details or {})
        lines = (escape(line, _MAX_MESSAGE) for line in status_message.splitlines())
        self.status_message = "\n".join(lines) or self.message

    def reworded(self, words: Callable[[str], str]) -> StoreError:
        """Return the same refusal with its field names replaced by `words`."""
        causes = [{name: words(text) for name, text in cause.items()} for cause in self.details.get("causes", ())]
        details = {**self.details, "causes": causes} if causes else self.details
        return StoreError(self.code, self.reason, words(self.message), details, words(self.status_message))

    def to_dict(self) -> dict[str, Any]:
        """Return the refusal as a Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Failure",
            "message": self.status_message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {name: value for name, value in status.items() if value or name == "metadata"}


class Suppressed:
    """A context manager that suppresses a refusal with one of the codes."""

    def __init__(self, *codes: int) -> None:
        self._codes = codes

    def __enter__(self) -> None:
        pass

    def __exit__(self, type_: object, error: object, traceback: object) -> bool:
        return isinstance(error, StoreError) and error.code in self._codes


def not_found(resource: APIResource, key: str) -> StoreError:
    """Return the refusal for an object that does not exist."""
    message = f"{_resource_name(resource, key)} not found"
    return StoreError(404, "NotFound", f"{resource.kind} {key} not found", _about(resource, key), message)


def unknown_kind(name: str) -> StoreError:
    """Return the refusal for a kind, or a subresource of a kind, that does not exist."""
    message = "the server could not find the requested resource"
    return StoreError(404, "NotFound", f"kind {name} not found", status_message=message)


def already_exists(resource: APIResource, key: str) -> StoreError:
    """Return the refusal for a name that is taken."""
    message = f"{_resource_name(resource, key)} already exists"
    return StoreError(409, "AlreadyExists", f"{resource.kind} {key} already exists", _about(resource, key), message)


def conflict(resource: APIResource, key: str, problem: str, wording: str = "") -> StoreError:
    """Return the refusal of a write whose preconditions do not hold; `wording` is kube-apiserver's wording."""
    message = f"Operation cannot be fulfilled on {_resource_name(resource, key)}: {wording or problem}"
    return StoreError(409, "Conflict", f"{resource.kind} {key}: {problem}", _about(resource, key), message)


def forbidden(resource: APIResource, key: str, problem: str, cause: str = "") -> StoreError:
    """Return a refusal by admission; `cause` is the reason of its one cause, "" for none."""
    details = _about(resource, key)
    if cause:
        details["causes"] = [{"reason": cause, "message": problem}]
    message = f"{_resource_name(resource, key)} is forbidden: {problem}"
    return StoreError(403, "Forbidden", f"{resource.kind} {key} is forbidden: {problem}", details, message)


def reason_of(message: str) -> str:
    """Return why admission refused an object, without the object's name, which may be generated."""
    before, _, reason = message.partition(" is forbidden: ")
    return reason or before


def invalid(
    resource: APIResource, key: str, problem: str, path: str = "", cause: str = "FieldValueInvalid"
) -> StoreError:
    """Return the refusal of an object that is invalid in the field at `path` (`.spec.replicas`).

    The path "" means the object itself.
    """
    field = path.removeprefix(".")
    return _invalid(resource, key, [(cause, problem, field)], f"{field}: {problem}" if field else problem)


def invalid_fields(resource: APIResource, key: str, findings: Sequence[Finding]) -> StoreError:
    """Return the refusal of an invalid object with all findings, each with its field."""
    causes = [(finding.cause, finding.message, finding.path.removeprefix(".")) for finding in findings]
    listed = ", ".join(str(finding).removeprefix(".") for finding in findings)
    return _invalid(resource, key, causes, f"[{listed}]" if len(findings) > 1 else listed)


def _invalid(resource: APIResource, key: str, causes: Iterable[tuple[str, str, str]], listed: str) -> StoreError:
    """Return the refusal with its causes, each a reason, a message and a field."""
    details = {
        **_about(resource, key),
        "kind": resource.kind,
        "causes": [{"reason": reason, "message": message, "field": field} for reason, message, field in causes],
    }
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    status_message = f'{kind} "{_name(key)}" is invalid: {listed}'
    return StoreError(422, "Invalid", f"{resource.kind} {key} is invalid: {listed}", details, status_message)


def unreadable(resource: APIResource, key: str, error: InputError) -> StoreError:
    """Return the refusal for an error of reading (400) or validation (422)."""
    if isinstance(error, MalformedError):
        return bad_request(str(error.located(object=f"{resource.kind} {key}")))
    return invalid(resource, key, error.problem, error.path)


def bad_request(problem: str) -> StoreError:
    """Return the refusal of a malformed request."""
    return StoreError(400, "BadRequest", problem)


def too_large_object() -> StoreError:
    """Return the refusal of an object that etcd would not store (rpctypes.ErrRequestTooLarge)."""
    problem = f"etcdserver: request is too large: an object has at most {MAX_OBJECT_BYTES} bytes with its defaults"
    return StoreError(500, "", problem)


def invalid_options(kind: str, field: str, problem: str, cause: str = "FieldValueForbidden") -> StoreError:
    """Return the refusal of contradictory options; `kind` is that of the options, such as ListOptions."""
    problem = f"Forbidden: {problem}" if cause == "FieldValueForbidden" else problem
    causes = [{"reason": cause, "message": problem, "field": field}]
    details = {"group": "meta.k8s.io", "kind": kind, "causes": causes}
    return StoreError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {field}: {problem}', details)


def too_many_requests(
    resource: APIResource, key: str, problem: str, cause: str, retry_after_seconds: int = 0
) -> StoreError:
    """Return the refusal of a disruption that is not possible now.

    `cause` names the exhausted limit; 0 seconds mean that the time of the next try is unknown.
    """
    details = _about(resource, key)
    details |= {"causes": [{"reason": cause, "message": problem}], "retryAfterSeconds": retry_after_seconds}
    # kubectl drain shows this message; the cause names the budget.
    is_budget = cause == "DisruptionBudget"
    status_message = "Cannot evict pod as it would violate the pod's disruption budget." if is_budget else ""
    message = f"{resource.kind} {key} cannot be disrupted now: {problem}"
    return StoreError(429, "TooManyRequests", message, details, status_message)


def expired(version: int, oldest: int) -> StoreError:
    """Return the refusal for a version whose later events are incomplete; `oldest` is the first complete version."""
    return StoreError(410, "Expired", f"too old resource version: {version} ({oldest})")


def too_large(version: int, current: int) -> StoreError:
    """Return the refusal of a version in the future (storage.NewTooLargeResourceVersionError)."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return StoreError(504, "Timeout", f"too large resource version: {version}, current: {current}", details)


def _about(resource: APIResource, key: str) -> dict[str, Any]:
    return {"name": _name(key), "group": resource.group, "kind": resource.plural}


def _resource_name(resource: APIResource, key: str) -> str:
    """Return the object as kube-apiserver names it in messages: `pods "web"`, `deployments.apps "web"`."""
    return f'{resource.qualified} "{_name(key)}"'


def _name(key: str) -> str:
    return key.rpartition("/")[2]
