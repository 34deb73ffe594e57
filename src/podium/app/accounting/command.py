"""`podium ledger`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from podium.app.console import options
from podium.app.console.command import Command, option
from podium.controllers.ledger.disruption import Cause

if TYPE_CHECKING:
    from podium.app.accounting.account import Account

_GROUPINGS = ("owner", "namespace", "priority", "cause", "node", "by", "for")
_EPILOG = """
\b
Examples: the disruptions of a simulation; the preemptions in the last hour of podium up; the disruptions that a cluster
without a ledger shows; usage as CSV
  podium simulate -f examples/preemption-loop.yaml -o json | podium ledger -f -
  podium ledger --data-dir ./cluster --cause preemption --since 1h
  podium ledger --context production
  podium ledger --data-dir ./cluster --usage --since 24h -o csv
"""


@click.command(cls=Command, epilog=_EPILOG)
@option(
    "-f --filename file",
    "The output of podium simulate or plan -o json, a ledger, or - for standard input; may be gzipped.",
    metavar="FILE",
)
@option("--data-dir", "The data directory of podium up, which may be running.", metavar="DIR")
@options.optional_cluster_options
@option("--owner owners", "Only pods of this workload, such as shop/web. Repeatable.", metavar="NAME", multiple=True)
@option("-n --namespace namespaces", "Only this namespace. Repeatable.", metavar="NAME", multiple=True)
@option(
    "--cause causes",
    f"Only for this cause: {', '.join(get_args(Cause))}. Repeatable.",
    type=click.Choice(get_args(Cause)),
    metavar="CAUSE",
    multiple=True,
)
@option("--min-priority lowest_priority", "Only pods of at least this priority.", type=int, metavar="N")
@option("--max-priority highest_priority", "Only pods of at most this priority.", type=int, metavar="N")
@option("--since", "Only since this time, or this duration before the end, such as 1h.", default="", metavar="TIME")
@option("--until", "Only until this time, or this duration before the end.", default="", metavar="TIME")
@option("--in-vain only_in_vain", "Only disruptions in vain.", is_flag=True)
@option(
    "--group-by grouping",
    f"The key to group disruptions by: {', '.join(_GROUPINGS)}.",
    type=click.Choice(_GROUPINGS),
    metavar="KEY",
    default="owner",
    show_default=True,
)
@option("--all every", "List each disruption, or with --usage each hour.", is_flag=True)
@option("--usage", "Show what namespaces requested, by PriorityClass and hour, instead of disruptions.", is_flag=True)
@options.output_option_of(
    ("text", "json", "yaml", "csv", options.HTML),
    "How the answer is printed; csv has a row for each disruption, html a timeline with tables.",
)
def ledger(
    *,
    file: str | None,
    data_dir: str | None,
    cluster: options.ClusterSource | None,
    every: bool,
    usage: bool,
    form: str,
    **limits: Any,
) -> None:
    """Show the disruptions of pods: victims, beneficiaries, causes, costs and outcomes.

    Ledgers record each preemption, eviction, drain, move and node failure: in simulations, in the data directory of
    podium up, and in podium scheduler and podium reschedule with --ledger. With --context, disruptions are
    reconstructed from the objects and Events of a cluster, in addition to such a ledger. If none are found because you
    are not allowed to list Pods or Events, the exit code is 1. --usage shows what namespaces requested over time, by
    priority, for chargeback.
    """
    from podium.app.accounting.account import LedgerQuery, answer_of
    from podium.app.accounting.text import usage_of, write_ledger, write_usage
    from podium.app.console.output import show_answer

    query = LedgerQuery(**limits)
    if usage and (query.owners or query.causes or query.only_in_vain or form == options.HTML):
        problem = "applies to disruptions; --usage takes --namespace, --min-priority, --max-priority, --since, --until."
        raise click.UsageError(f"--usage excludes --owner, --cause, --in-vain and -o html: each {problem}")
    account = _account(file, data_dir, cluster)
    if usage:
        used = usage_of(account, query)
        is_empty = not used.rows
        show_answer(used, form, lambda page: write_usage(page, used, every=every))
    else:
        answer = answer_of(account, query)
        is_empty = not answer.records
        show_answer(answer, form, lambda page: write_ledger(page, answer, every=every))
    if account.hidden and is_empty:
        # No disruptions in kinds that could not be listed does not mean that there were none.
        sys.exit(1)


def _account(file: str | None, data_dir: str | None, cluster: options.ClusterSource | None) -> Account:
    from podium.app.accounting.account import cluster_account, directory_account, read_account

    if file is not None and data_dir is not None:
        raise click.UsageError("Name one thing to read: -f FILE, or --data-dir DIR.")
    kept = read_account(file) if file is not None else None if data_dir is None else directory_account(data_dir)
    if cluster is None and kept is not None:
        return kept
    if cluster is None and options.is_asked_by_kubectl():
        cluster = options.ClusterSource()
    if cluster is None:
        raise click.UsageError("Name one thing to read: -f FILE, --data-dir DIR, or a cluster with --context.")
    if kept is not None and not kept.is_dated:
        raise click.UsageError("A simulation has no dates: with --context, use the ledger of that cluster.")
    return cluster_account(cluster, kept)
