"""What people are told about an input that was read all the same: each finding as a value, with its place.

Errors end the reading; a warning is something that a person may want to know before trusting the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from podium.api.errors import InputError, escape, placed

Validation = Literal["strict", "warn", "ignore"]
"""What becomes of warnings about fields that there are not, and of what kube-apiserver would refuse.

`strict` makes errors of them, `warn` tells them, `ignore` does not look for any. The words are those of kubectl's
`--validate`.
"""

VALIDATIONS: tuple[Validation, ...] = ("strict", "warn", "ignore")

Reason = Literal["unknown-field", "invalid", "slip", "left-out"]
"""Why there is a warning.

`unknown-field`: no schema of Kubernetes has the field. `invalid`: kube-apiserver would refuse the object. `slip`: it is
right, but hardly meant so. `left-out`: a file or a folder was not read.
"""

_MAX_MESSAGE = 1_000
_REFUSED: tuple[Reason, ...] = ("unknown-field", "invalid")


@dataclass(frozen=True, slots=True)
class InputWarning:
    """Something about an object, or a file, of the input.

    The place is that of an InputError: `source` is the file's name or "", `document` the 1-based number in it or None,
    `object` as in `Pod default/web` or "", `path` as in `.spec.nodeSelectors` or "".
    """

    message: str
    reason: Reason
    source: str = ""
    document: int | None = None
    object: str = ""
    path: str = ""

    @property
    def is_refused_when_strict(self) -> bool:
        """Whether `strict` makes an error of it."""
        return self.reason in _REFUSED

    def located(self, *, source: str, document: int | None, object: str) -> InputWarning:  # noqa: A002
        """The same warning with the parts of its place filled in that are not known yet."""
        return replace(
            self,
            source=self.source or source,
            document=document if self.document is None else self.document,
            object=self.object or object,
        )

    def as_error(self) -> InputError:
        """The error that it is where it is not let pass."""
        return InputError(self.message, source=self.source, document=self.document, object=self.object, path=self.path)

    def to_dict(self) -> dict[str, str | int]:
        """The warning as plain values; parts of the place that there are not are left out."""
        values: dict[str, str | int | None] = {
            "reason": self.reason,
            "message": escape(self.message, _MAX_MESSAGE),
            "source": self.source,
            "document": self.document,
            "object": self.object,
            "path": self.path,
        }
        return {name: value for name, value in values.items() if value not in ("", None)}

    def __str__(self) -> str:
        return placed(self.source, self.document, self.object, self.path, self.message)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Objects of a kind that Podium does not read.

    `may_create_pods` is False where Kubernetes itself says that the kind makes no pods. `sources` are the files that
    they are in, each once.
    """

    kind: str
    api_version: str
    count: int
    may_create_pods: bool
    sources: tuple[str, ...]

    def to_dict(self) -> dict[str, str | int | bool | list[str]]:
        """The same as plain values."""
        return {
            "kind": self.kind,
            "apiVersion": self.api_version,
            "count": self.count,
            "mayCreatePods": self.may_create_pods,
            "sources": list(self.sources),
        }
