"""Options that several questions of `podium plan` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from podium.app.console.source import ClusterSource, Source, cluster_options
from podium.app.planning.finding_codes import FINDING_CODES

Answer = TypeVar("Answer")


_ANY = "any"


class Codes(click.ParamType[tuple[str, ...]]):
    """Codes of findings with commas between them, or `any`."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Read the text, or fail with what is wrong with it."""
        if isinstance(value, tuple):
            return value
        codes = tuple(code.strip() for code in value.split(",") if code.strip())
        for code in codes:
            if code not in (*FINDING_CODES, _ANY):
                self.fail(f"{code!r} is no code; any, or some of {', '.join(FINDING_CODES)} with commas", param, ctx)
        if not codes:
            self.fail(f"names no code; any, or some of {', '.join(FINDING_CODES)} with commas", param, ctx)
        return tuple(FINDING_CODES) if _ANY in codes else codes


def joined(group: Source, own: Source) -> Source:
    """The files of both, and the cluster that the question names, or else the group."""
    cluster: ClusterSource | None = own.cluster if own.cluster is not None else group.cluster
    allows = own.allows_exec_plugins or group.allows_exec_plugins
    overrides = (*group.overrides, *own.overrides)
    return Source((*group.files, *own.files), cluster, allows, overrides)


_nodes_arguments = (
    click.argument("nodes", nargs=-1, metavar="[NODE]..."),
    click.option(
        "-l", "--selector", default="", metavar="LABELS", help="The nodes with these labels, as kubectl has it."
    ),
)


def node_arguments(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Which nodes: names, and a label selector."""
    for option in reversed(_nodes_arguments):
        command = option(command)
    return command


def change_options(help_text: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """The files of the change, given to the command as `change`; its cluster comes from other options."""

    def decorate(command: Callable[..., Answer]) -> Callable[..., Answer]:
        @wraps(command)
        def with_source(*, cluster_files: tuple[str, ...], cluster: ClusterSource, **others: Any) -> Answer:
            named = cluster if cluster.context or cluster.kubeconfig else None
            return command(source=Source(cluster_files, named, cluster.allows_exec_plugins), **others)

        decorated: Callable[..., Answer] = cluster_options(with_source)
        decorated = click.option(
            "--cluster",
            "cluster_files",
            metavar="FILE",
            multiple=True,
            help="The cluster's files, if they are not named before the command. May be repeated.",
        )(decorated)
        return click.option(
            "-f", "--filename", "change", metavar="FILE", multiple=True, help=f"{help_text} May be repeated."
        )(decorated)

    return decorate
