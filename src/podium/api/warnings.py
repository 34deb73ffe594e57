"""Input warnings: findings that do not prevent reading, each with its location.

Errors end the reading; a warning is something to know before trusting the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from podium.api.errors import escape, placed

Validation = Literal["strict", "warn", "ignore"]
"""The treatment of unknown fields, and of problems for which kube-apiserver would refuse an object.

`strict` makes them errors, `warn` reports them, `ignore` does not look for them. The values are those of kubectl's
`--validate`."""

VALIDATIONS: tuple[Validation, ...] = ("strict", "warn", "ignore")

Reason = Literal["unknown-field", "invalid", "slip", "left-out"]
"""The reason of a warning.

`unknown-field`: no schema of Kubernetes has the field. `invalid`: kube-apiserver would refuse the object. `slip`: it is
valid, but hardly intended. `left-out`: a file or a folder was not read."""

_MAX_MESSAGE = 1_000
REFUSED: tuple[Reason, ...] = ("unknown-field", "invalid")
"""The reasons for which `strict` makes a warning an error."""


@dataclass(frozen=True, slots=True)
class InputWarning:
    """A warning about an object or a file of the input.

    The location is that of an InputError: `source` is the file's name or "", `document` the 1-based number in it or
    None, `object` as in `Pod default/web` or "", `path` as in `.spec.nodeSelectors` or "".
    """

    message: str
    reason: Reason
    source: str = ""
    document: int | None = None
    object: str = ""
    path: str = ""

    def located(self, *, source: str, document: int | None, object: str) -> InputWarning:  # noqa: A002
        """Return the same warning with unknown parts of its location filled in."""
        return replace(
            self,
            source=self.source or source,
            document=document if self.document is None else self.document,
            object=self.object or object,
        )

    def to_dict(self) -> dict[str, str | int]:
        """Return the warning as plain values; unknown parts of the location are omitted."""
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

    `may_create_pods` is False for Kubernetes' own kinds that create no pods. `sources` are the files that contain them,
    each once.
    """

    kind: str
    api_version: str
    count: int
    may_create_pods: bool
    sources: tuple[str, ...]

    def to_dict(self) -> dict[str, str | int | bool | list[str]]:
        return {
            "kind": self.kind,
            "apiVersion": self.api_version,
            "count": self.count,
            "mayCreatePods": self.may_create_pods,
            "sources": list(self.sources),
        }
