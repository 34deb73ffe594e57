"""`podium delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command
from podium.app.console.options import Duration
from podium.app.console.source import ClusterSource, cluster_options

if TYPE_CHECKING:
    from podium.app.deleting.deletion import Deletion, Wish

_POD = ("pod", "pods", "po")
_SECOND = 10**9
_EPILOG = """
\b
Examples: have a pod go within its disruption budgets, for up to five minutes; and whatever they say
  podium delete pod web-0 -n shop --timeout 5m
  podium delete pod web-0 -n shop --direct
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("targets", nargs=-1, required=True, metavar="pod NAME...")
@cluster_options
@click.option("-n", "--namespace", metavar="NAME", help="Their namespace; without it, that of the context, or default.")
@click.option("--direct", is_flag=True, help="Delete them, whatever their budgets say.")
@click.option(
    "--grace-period",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="How long they may take to end; without it, as long as each has said.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="1m",
    show_default=True,
    help="For how long a pod that its budgets keep is asked for again, and its end waited for; 0 asks once.",
)
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until they have ended.")
@click.option("--dry-run", is_flag=True, help="Ask the server whether it would let them go, and change nothing.")
def delete(
    *,
    targets: tuple[str, ...],
    cluster: ClusterSource,
    namespace: str | None,
    direct: bool,
    grace_period: int | None,
    timeout: int,
    wait: bool,
    dry_run: bool,
) -> None:
    """Delete pods through eviction, so that their disruption budgets are kept.

    A pod that its budgets keep is asked for again until it may go or the time is over; then it is said which budgets
    keep it, and why. It works on any cluster.
    """
    from podium.api.errors import InputError, escape, shown
    from podium.app.deleting.deletion import Wish, kind_and_names

    try:
        kind, names = kind_and_names(targets)
    except InputError as error:
        raise click.UsageError(str(error)) from None
    if kind.lower() not in _POD:
        raise click.UsageError(f"{shown(kind)} is not evicted, only pods are; use kubectl delete")
    if not names:
        raise click.UsageError("names no pod; write `pod NAME` or `pod/NAME`")
    wish = Wish(
        is_direct=direct,
        is_dry_run=dry_run,
        waits=wait,
        grace_seconds=grace_period,
        timeout_s=timeout / _SECOND,
    )
    failed = 0
    for deletion in _delete(cluster, namespace, names, wish):
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
    "blocked": "is kept by its disruption budgets",
    "going": "has not ended",
    "gone": "is gone already",
    "refused": "cannot be deleted",
}


def _delete(cluster: ClusterSource, namespace: str | None, names: list[str], wish: Wish) -> list[Deletion]:
    """Delete the pods, one after another, so that each sees what the ones before it left of the budgets."""
    import asyncio
    import os
    import time

    from podium.app.deleting.deletion import delete_pod
    from podium.client.credentials import Credentials
    from podium.client.kubeconfig import find_access
    from podium.client.session import Session
    from podium.store.api_resources import APIResources

    async def run() -> list[Deletion]:
        access = find_access(os.environ, cluster.kubeconfig, cluster.context)
        credentials = Credentials(access, time.time_ns, allows_exec=cluster.allows_exec_plugins)
        session = Session(access, credentials, APIResources(), user_agent="podium-delete")
        space = namespace or access.namespace or "default"
        try:
            return [await delete_pod(session, f"{space}/{name}", wish) for name in names]
        finally:
            await session.close()

    return asyncio.run(run())
