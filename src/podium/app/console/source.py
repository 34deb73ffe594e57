"""Where a command's objects come from: files, a cluster, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import click

Answer = TypeVar("Answer")

KUBECTL_PLUGIN = "kubectl podium"
"""What the command is called where kubectl runs it."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """A cluster, by a context of a kubeconfig; "" is the current one, and the usual files."""

    context: str = ""
    kubeconfig: str = ""
    allows_exec_plugins: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Files in their order, and the cluster that is read before them, None for none.

    The objects of `overrides` take the place of those of the same kind and name (`podium.api.input.overrides`).
    """

    files: tuple[str, ...] = ()
    cluster: ClusterSource | None = None
    allows_exec_plugins: bool = False
    overrides: tuple[str, ...] = ()

    def with_file(self, file: str) -> Source:
        return replace(self, files=(*self.files, file))

    def or_current_cluster(self) -> Source:
        """The same, or the cluster of the current context where nothing is named."""
        if self.files or self.cluster is not None:
            return self
        return replace(self, cluster=ClusterSource(allows_exec_plugins=self.allows_exec_plugins))

    def needed(self, otherwise: str = "or a cluster with --context") -> Source:
        """The same, which has to name something; whoever asks kubectl means the current cluster.

        Raises UsageError, which says what could be given beside files.
        """
        if self.files or self.cluster is not None:
            return self
        if is_asked_by_kubectl():
            return self.or_current_cluster()
        raise click.UsageError(f"Nothing to read: give files with -f, {otherwise}.")


def is_asked_by_kubectl() -> bool:
    """Whether kubectl runs the command: whoever asks it means the current cluster where nothing is named."""
    return click.get_current_context().find_root().info_name == KUBECTL_PLUGIN


_CLUSTER_OPTIONS = (
    click.option(
        "--context",
        metavar="NAME",
        help="Read the objects from the cluster of this context of the kubeconfig; nothing is changed there.",
    ),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="The kubeconfig; without it, those of KUBECONFIG, or ~/.kube/config. Without --context, its current one.",
    ),
    click.option(
        "--allow-exec-plugins",
        "allows_exec_plugins",
        is_flag=True,
        help="Run the program that the kubeconfig names for credentials.",
    ),
)
_FILES = click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    help="Manifests, YAML or JSON, gzipped or not, or a snapshot: a file, a directory with its folders, or - for "
    "standard input. May be repeated.",
)
_OVERRIDES = click.option(
    "--override",
    "overrides",
    metavar="FILE",
    multiple=True,
    help="Manifests as with -f, read after all others: each object takes the place of the one of its kind and name. "
    "May be repeated.",
)


def cluster_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options that name a cluster, given to the command as `cluster`: a ClusterSource."""

    @wraps(command)
    def with_cluster(
        *, context: str | None, kubeconfig: str | None, allows_exec_plugins: bool, **others: Any
    ) -> Answer:
        return command(cluster=ClusterSource(context or "", kubeconfig or "", allows_exec_plugins), **others)

    return _with(with_cluster, _CLUSTER_OPTIONS)


def optional_cluster_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The same for a command that does without a cluster, too: None where none is named, and no program is let run."""

    @wraps(command)
    def with_cluster(
        *, context: str | None, kubeconfig: str | None, allows_exec_plugins: bool, **others: Any
    ) -> Answer:
        cluster = _named_cluster(context, kubeconfig, allows_exec_plugins)
        if cluster is None and allows_exec_plugins:
            cluster = ClusterSource(allows_exec_plugins=True)
        return command(cluster=cluster, **others)

    return _with(with_cluster, _CLUSTER_OPTIONS)


def _named_cluster(context: str | None, kubeconfig: str | None, allows_exec_plugins: bool) -> ClusterSource | None:
    if context is None and kubeconfig is None:
        return None
    return ClusterSource(context or "", kubeconfig or "", allows_exec_plugins)


def source_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The options that name files and a cluster, given to the command as `source`; one of them has to be there."""
    return _with_source(override_option(command), is_required=True)


def override_option(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The option that names files whose objects replace others, added to the `source` that the command is given."""

    @wraps(command)
    def with_overrides(*, source: Source, overrides: tuple[str, ...], **others: Any) -> Answer:
        return command(source=replace(source, overrides=overrides), **others)

    return _with(with_overrides, (_OVERRIDES,))


def optional_source_options(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """The same for a command that does without objects, too."""
    return _with_source(command, is_required=False)


def _with_source(command: Callable[..., Answer], *, is_required: bool) -> Callable[..., Answer]:
    @wraps(command)
    def with_source(
        *,
        files: tuple[str, ...],
        context: str | None,
        kubeconfig: str | None,
        allows_exec_plugins: bool,
        **others: Any,
    ) -> Answer:
        cluster = _named_cluster(context, kubeconfig, allows_exec_plugins)
        source = Source(files, cluster, allows_exec_plugins)
        return command(source=source.needed() if is_required else source, **others)

    return _with(with_source, (_FILES, *_CLUSTER_OPTIONS))


def _with(command: Callable[..., Answer], options: tuple[Callable[..., Any], ...]) -> Callable[..., Answer]:
    for option in reversed(options):
        command = option(command)
    return command
