"""What the store answers when it refuses: the code, reason and message of a Kubernetes Status."""

from __future__ import annotations

from podium.api.errors import PodiumError


class StoreError(PodiumError):
    """A refused request; nothing was written.

    `code` is the HTTP status, `reason` the Status reason (meta/v1 StatusReason), `message` is for people.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


def not_found(kind: str, key: str) -> StoreError:
    """No object of that kind and key."""
    return StoreError(404, "NotFound", f"{kind} {key} not found")


def already_exists(kind: str, key: str) -> StoreError:
    """The name is taken."""
    return StoreError(409, "AlreadyExists", f"{kind} {key} already exists")


def conflict(kind: str, key: str, problem: str) -> StoreError:
    """The object is not what the writer thinks it is."""
    return StoreError(409, "Conflict", f"{kind} {key}: {problem}")


def invalid(kind: str, key: str, problem: str) -> StoreError:
    """The object breaks a rule of its kind."""
    return StoreError(422, "Invalid", f"{kind} {key} is invalid: {problem}")


def forbidden(kind: str, key: str, problem: str) -> StoreError:
    """Admission does not let the object in."""
    return StoreError(403, "Forbidden", f"{kind} {key} is forbidden: {problem}")
