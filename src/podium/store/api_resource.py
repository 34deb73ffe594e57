"""A kind of object as the API serves it."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.meta import Kubernetes


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    """One kind: its group and version, how its objects are named, and which subresources they have.

    `name` is what the store calls it: the kind alone for what is built in, `Widget.example.com` for a custom resource.
    `type` reads what Podium reads of an object; plain Kubernetes reads the metadata alone. `selectable` are the fields
    that field selectors may name beside name and namespace, each with the value that stands for an absent one.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    version: str = "v1"
    type: type[Kubernetes] = Kubernetes
    has_status: bool = True
    has_scale: bool = False
    is_custom: bool = False
    selectable: tuple[tuple[str, str], ...] = ()
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.kind}.{self.group}" if self.is_custom else self.kind)

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The plural with its group: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
