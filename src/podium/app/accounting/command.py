"""`podium ledger`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.app.console.command import Command
from podium.app.console.options import (
    HTML,
    ClusterSource,
    is_asked_by_kubectl,
    optional_cluster_options,
    output_option_of,
)

if TYPE_CHECKING:
    from podium.app.accounting.account import Account, Asked
    from podium.app.accounting.text import UsageAnswer

_CAUSES = (
    "preemption",
    "eviction",
    "drain",
    "autoscaler",
    "rescheduler",
    "gang-release",
    "pressure",
    "taint",
    "node-gone",
    "deletion",
)
_GROUPINGS = ("owner", "namespace", "priority", "cause", "node", "by", "for")
_EPILOG = """
\b
Examples: what a simulation did to whom; who was preempted in the last hour of a cluster; what a cluster of which nobody
kept account tells by itself
  podium simulate -f examples/preemption-loop.yaml -o json | podium ledger -f -
  podium ledger --data-dir ./cluster --cause preemption --since 1h
  podium ledger --context production
  podium ledger --data-dir ./cluster --usage --since 24h -o csv
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    help="What podium simulate or podium plan printed with -o json, gzipped or not, a ledger, or - for standard input.",
)
@click.option("--data-dir", metavar="DIR", help="The data directory of podium up, which may be running.")
@optional_cluster_options
@click.option(
    "--owner", "owners", metavar="NAME", multiple=True, help="Only pods of this workload, such as shop/web. Repeatable."
)
@click.option("-n", "--namespace", "namespaces", metavar="NAME", multiple=True, help="Only pods there. Repeatable.")
@click.option("--cause", "causes", type=click.Choice(_CAUSES), multiple=True, help="Only for this cause. Repeatable.")
@click.option("--min-priority", "lowest_priority", type=int, metavar="N", help="Only pods of at least this priority.")
@click.option("--max-priority", "highest_priority", type=int, metavar="N", help="Only pods of at most this priority.")
@click.option(
    "--since", default="", metavar="TIME", help="Only from then on: a time, or how long before the end, such as 1h."
)
@click.option("--until", default="", metavar="TIME", help="Only up to then: a time, or how long before the end.")
@click.option("--in-vain", "only_in_vain", is_flag=True, help="Only those that were in vain.")
@click.option(
    "--group-by",
    "grouping",
    type=click.Choice(_GROUPINGS),
    default="owner",
    show_default=True,
    help="What disruptions are added up by.",
)
@click.option("--all", "every", is_flag=True, help="List each disruption, or with --usage each hour.")
@click.option(
    "--usage",
    is_flag=True,
    help="Say what namespaces requested, by PriorityClass and hour, instead of what was disrupted.",
)
@output_option_of(
    ("text", "json", "yaml", "csv", HTML),
    "How the answer is printed; csv is a row for each disruption, html a picture by time, with tables.",
)
def ledger(
    *,
    file: str | None,
    data_dir: str | None,
    cluster: ClusterSource | None,
    every: bool,
    usage: bool,
    form: str,
    **limits: Any,
) -> None:
    """Say who was disrupted, for whom and why, what it cost, and what became of them.

    Each preemption, eviction, drain, move and node failure is accounted for: by simulations, by podium up in its data
    directory, and by podium scheduler and podium reschedule with --ledger. A cluster that --context names tells what
    its objects and its Events know, beside what such a ledger has kept. If it shows no disruptions because some of
    them may not be listed, the exit code is 1. With --usage the answer is what namespaces requested over time, by
    priority, so that it can be charged for.
    """
    from podium.app.accounting.account import Asked, answer_of

    asked = Asked(**limits)
    if usage and (asked.owners or asked.causes or asked.only_in_vain or form == HTML):
        problem = "is about disruptions; --usage takes --namespace, --min-priority, --max-priority, --since, --until."
        raise click.UsageError(f"--usage goes without --owner, --cause, --in-vain and -o html: each {problem}")
    account = _account(file, data_dir, cluster)
    if usage:
        is_empty = not _show_usage(account, asked, form, every=every).rows
    else:
        answer = answer_of(account, asked)
        from podium.app.accounting.text import ledger_csv, write_ledger
        from podium.app.console.output import show_answer

        if form == "csv":
            click.echo(ledger_csv(answer.account, answer.records), nl=False)
        else:
            show_answer(answer, form, lambda page: write_ledger(page, answer, every=every))
        is_empty = not answer.records
    if account.hidden and is_empty:
        # What could not be read is not zero.
        sys.exit(1)


def _account(file: str | None, data_dir: str | None, cluster: ClusterSource | None) -> Account:
    from podium.app.accounting.account import directory_account, read_account

    if file is not None and data_dir is not None:
        raise click.UsageError("Name one thing to read: -f FILE, or --data-dir DIR.")
    kept = None
    if file is not None or data_dir is not None:
        kept = read_account(file) if file is not None else directory_account(data_dir or "")
    if cluster is None and kept is None and is_asked_by_kubectl():
        cluster = ClusterSource()
    if cluster is None and kept is None:
        raise click.UsageError("Name one thing to read: -f FILE, --data-dir DIR, or a cluster with --context.")
    if cluster is None and kept is not None:
        return kept
    if kept is not None and not kept.is_dated:
        raise click.UsageError("A run has no dates: beside --context give the ledger of that cluster.")
    from podium.app.accounting.cluster import cluster_account

    return cluster_account(cluster or ClusterSource(), kept)


def _show_usage(account: Account, asked: Asked, form: str, *, every: bool) -> UsageAnswer:
    from podium.app.accounting.text import usage_of, write_usage
    from podium.app.console.output import show_answer

    answer = usage_of(account, asked)
    if form == "csv":
        click.echo(answer.to_csv(), nl=False)
    else:
        show_answer(answer, form, lambda page: write_usage(page, answer, every=every))
    return answer
