"""The choice of the version: the requested one, else that of the cluster, else a guess from its kubelets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podium.api.basis import Caveat, caveat_of
from podium.api.input.documents import Document, snapshots_of
from podium.api.input.pod_stencil import PodStencil
from podium.api.node import Node
from podium.api.versions.apis import dropped_from, dropped_paths, gates_of_fields, is_served
from podium.api.versions.gates import MINORS, Gate
from podium.api.versions.release import (
    DEFAULT_RELEASE,
    READ_ONLY,
    Release,
    default_release,
    read_gates,
    read_version,
    shown_gates,
    version_in,
)

_ABOUT = "kubernetes-version"


@dataclass(frozen=True, slots=True)
class ReleaseChoice:
    """The version and the feature gates that a user requests; ``version`` "" is that of the input."""

    version: str = ""
    gates: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def exactly(cls, release: Release) -> ReleaseChoice:
        """Return the choice of this version with these gates."""
        return cls(str(release), release.gates)

    @property
    def options(self) -> str:
        """The choice as options of a command, each after a space."""
        version = f" --kubernetes-version {self.version}" if self.version else ""
        return version + (f" --feature-gates {shown_gates(self.gates)}" if self.gates else "")

    def of(self, found: Release | None = None) -> Release:
        """Return the version with its gates; ``found`` is that of the cluster, if known.

        Raises InputError for gates that the version refuses.
        """
        base = read_version(self.version) if self.version else found or DEFAULT_RELEASE
        return base.with_gates(dict(self.gates))

    def for_documents(self, documents: Sequence[Document]) -> tuple[Release, tuple[Caveat, ...]]:
        """Return the version that decides about these objects, and its caveats.

        Without a requested version, a Scenario's counts, then a Snapshot's, then that of the newest kubelet.
        Raises InputError for gates that the version refuses.
        """
        return self._with_caveats(None if self.version else _found(documents))

    def for_server(self, version: str) -> tuple[Release, tuple[Caveat, ...]]:
        """Return the version that decides at an API server of this version, and its caveats.

        Raises InputError for gates that the version refuses.
        """
        return self._with_caveats(None if self.version else _of_server(version))

    def _with_caveats(self, of_cluster: tuple[Release, list[Caveat]] | None) -> tuple[Release, tuple[Caveat, ...]]:
        """Return the version of the cluster with its caveats, or the requested one."""
        found, caveats = of_cluster or (read_version(self.version), [])
        release = found.with_gates(dict(self.gates))
        if release.minor in READ_ONLY:
            message = f"decisions of Kubernetes {release.short} were read from its source, and not measured"
            caveats.append(Caveat("version-not-measured", message, 1, (release.short,)))
        idle = tuple(name for name, _ in release.gates if name not in {*Gate, *gates_of_fields()})
        if idle:
            message = f"feature gates without effect here: {', '.join(idle)}"
            caveats.append(Caveat("gates-without-effect", message, len(idle), idle))
        return release, tuple(caveats)

    def dropped(self, documents: Sequence[Document], release: Release) -> Iterator[Caveat]:
        """Yield a caveat for fields and kinds of the objects that the version does not keep.

        The objects of a snapshot are as the cluster's own version has kept them.
        """
        own = set() if self.version else {document.source for _, document in snapshots_of(documents)}
        found: dict[str, list[str]] = {}
        whole: set[str] = set()
        of_stencils: dict[PodStencil | None, list[str]] = {}
        for document in documents:
            object_ = document.object
            if object_ is None or object_.kind in whole or document.source in own:
                continue
            if not is_served(object_.kind, release):
                found.setdefault(object_.kind, []).append(object_.key)
            elif not dropped_paths(object_.kind, release):
                whole.add(object_.kind)
                continue
            stencil = None if document.filled is None else document.filled.stencil
            if stencil is None or stencil not in of_stencils:
                of_stencils[stencil] = [*dropped_from(document.read_raw(), object_.kind, release)]
            for path in of_stencils[stencil]:
                found.setdefault(f"{object_.kind} .{path}", []).append(object_.key)
        if found:
            message = f"Kubernetes {release.short} does not keep all of the input; left out"
            yield caveat_of(
                "fields-dropped", message, [f"{what} of {len(keys):,}" for what, keys in sorted(found.items())]
            )


CLUSTER_RELEASE = ReleaseChoice()
"""The version of the cluster, without further feature gates."""


def read_choice(version: str = "", gates: str = "") -> ReleaseChoice:
    """Return a choice from the values of options. Raises InputError for invalid ones."""
    choice = ReleaseChoice(version.strip() and str(read_version(version)), read_gates(gates))
    if choice.version:
        choice.of()
    return choice


def _found(documents: Sequence[Document]) -> tuple[Release, list[Caveat]]:
    """Return the version of the cluster that the objects are from."""
    for document in documents:
        if document.object is None and document.raw.get("kind") == "Scenario":
            spec = document.raw.get("spec")
            if isinstance(spec, dict) and isinstance(version := spec.get("kubernetesVersion"), str):
                return read_version(version), []
    for snapshot, _ in snapshots_of(documents):
        if version_in(snapshot.server_version) is not None:
            return _of_server(snapshot.server_version)
    nodes = (document.object for document in documents if isinstance(document.object, Node))
    kubelets = {node.status.node_info.kubelet_version for node in nodes}
    newest = max(filter(None, map(version_in, kubelets)), default=None)
    if newest is None:
        return DEFAULT_RELEASE, []
    release, caveats = _supported(newest, f"the newest kubelet is v1.{newest[0]}.{newest[1]}")
    if not caveats:
        message = (
            f"decided as kube-scheduler {release}, the version of the newest kubelet: a guess, since a scheduler may "
            "be up to three minor versions ahead"
        )
        caveats = [Caveat(_ABOUT, message, 1, (str(release),))]
    return release, caveats


def _of_server(version: str) -> tuple[Release, list[Caveat]]:
    """Return the version of an API server."""
    found = version_in(version)
    if found is not None:
        return _supported(found, f"the cluster's version is {version}")
    message = f"the API server does not say its version: decided as kube-scheduler {DEFAULT_RELEASE}"
    return DEFAULT_RELEASE, [Caveat(_ABOUT, message, 1, (str(DEFAULT_RELEASE),))]


def _supported(found: tuple[int, int], why: str) -> tuple[Release, list[Caveat]]:
    """Return a version of a cluster, or else the nearest that is supported, with a caveat."""
    minor, patch = found
    if minor in MINORS:
        return Release(minor, patch), []
    nearest = default_release(MINORS[0] if minor < MINORS[0] else MINORS[-1])
    message = f"{why}, which Podium does not know: decided as kube-scheduler {nearest}"
    return nearest, [Caveat(_ABOUT, message, 1, (str(nearest),))]
