"""`kubectl podium delete`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from podium.api.times import SECOND
from podium.app.console.command import Command, option
from podium.app.console.options import ClusterSource, Duration, cluster_options

_POD = ("pod", "pods", "po")
_EPILOG = """
\b
Examples: evict a pod within its disruption budgets, retrying for up to five minutes; delete it directly
  kubectl podium delete pod web-0 -n shop --timeout 5m
  kubectl podium delete pod web-0 -n shop --direct
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("targets", nargs=-1, required=True, metavar="pod NAME...")
@cluster_options
@option("-n --namespace", "The pods' namespace; default: that of the context, or default.", metavar="NAME")
@option("--direct is_direct", "Delete the pods directly, ignoring disruption budgets.", is_flag=True)
@option(
    "--grace-period grace_seconds",
    "The grace period; default: that of each pod.",
    type=click.IntRange(0),
    metavar="SECONDS",
)
@option(
    "--timeout",
    "How long to retry evictions that budgets refuse and to wait for the end of pods; 0 tries once.",
    type=Duration(),
    default="1m",
    show_default=True,
)
@option("--wait/--no-wait waits", "Wait until the pods have ended.", default=True, show_default=True)
@option("--dry-run is_dry_run", "Ask the server whether it would accept the evictions; change nothing.", is_flag=True)
def delete(
    *, targets: tuple[str, ...], cluster: ClusterSource, namespace: str | None, timeout: int, **options: Any
) -> None:
    """Delete pods through eviction, within their disruption budgets.

    An eviction that budgets refuse is retried until it succeeds or times out; the error names these budgets and the
    reasons. It works on any cluster.
    """
    import asyncio

    from podium.api.errors import escape
    from podium.app.deleting.deletion import DeletionOptions, delete_pods

    names = _pods_named(targets)
    wanted = DeletionOptions(timeout_s=timeout / SECOND, **options)
    failed = 0
    for deletion in asyncio.run(delete_pods(cluster, namespace, names, wanted)):
        name = deletion.pod.partition("/")[2]
        if deletion.is_done:
            click.echo(escape(f'pod "{name}" {_SAID.get(deletion.outcome, deletion.outcome)}', 500))
            continue
        failed += 1
        click.echo(escape(f'podium: error: pod "{name}" {_SAID[deletion.outcome]}', 500), err=True)
        for reason in deletion.reasons:
            click.echo(f"  {escape(reason, 1_000)}", err=True)
    sys.exit(1 if failed else 0)


_SAID = {
    "blocked": "is not evicted: its disruption budgets do not allow it",
    "going": "has not ended",
    "gone": "is gone already",
    "refused": "cannot be deleted",
}


def _pods_named(words: Sequence[str]) -> list[str]:
    """Return the names in arguments: `pod a b` or `pod/a pod/b`. Raises UsageError."""
    from podium.api.errors import shown

    kinds = {word.partition("/")[0] for word in words if "/" in word}
    names = [word.partition("/")[2] for word in words if "/" in word]
    if kinds and len(names) != len(words):
        raise click.UsageError("either all arguments are KIND/NAME, or the first is the kind")
    if not kinds:
        kinds, names = {words[0]}, list(words[1:])
    if any(kind.lower() not in _POD for kind in kinds):
        raise click.UsageError(f"{shown(', '.join(sorted(kinds)))} is not evicted, only pods are; use kubectl delete")
    if not names:
        raise click.UsageError("names no pod; write `pod NAME` or `pod/NAME`")
    return names
