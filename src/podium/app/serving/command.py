"""`podium up`."""

from __future__ import annotations

from typing import Any

import click

from podium.app.console.command import Command
from podium.app.console.options import (
    Duration,
    adding,
    config_option,
    ignore_extenders_option,
    ledger_age_option,
    optional_source_options,
    override_option,
    release_options,
    validate_option,
)
from podium.controlplane.component_names import COLLECTORS, CONTROLLERS, KUBELET, SCHEDULER, SWITCHABLE

_EPILOG = """
\b
Examples: a hundred nodes until Ctrl-C, and a command with a cluster of its own
  podium up --nodes 100
  podium up --nodes 3 -- kubectl get nodes -o wide
"""


_SWITCHES = {
    **{name: f"Run without the {name}." for name in SWITCHABLE},
    SCHEDULER: "Let another scheduler do the work.",
    KUBELET: "Let others report the state of nodes and pods.",
}


def _without(given: dict[str, Any]) -> frozenset[str]:
    left_out = {name for name in SWITCHABLE if given.pop(f"no_{name.replace('-', '_')}")}
    return frozenset(left_out | {*CONTROLLERS, *COLLECTORS} if given.pop("no_controllers") else left_out)


@click.command(cls=Command, epilog=_EPILOG)
@optional_source_options
@override_option
@validate_option
@click.option(
    "--nodes", type=click.IntRange(min=0, max=100_000), default=0, metavar="N", help="How many nodes to make."
)
@click.option("--node-template", metavar="FILE", help="A Node, without a name, after which they are made.")
@click.option("--data-dir", metavar="DIR", help="The folder that keeps everything, also for the next start.")
@click.option("--no-ledger", "has_ledger", flag_value=False, default=True, help="Do not record disruptions there.")
@ledger_age_option
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    metavar="X",
    help="How many times as fast as the clock time passes.",
)
@click.option("--seed", type=int, help="Chooses uids, and between equal nodes; by chance, unless given.")
@click.option(
    "--start-delay", "start_delay_ns", type=Duration(), default=0, help="How long a bound pod takes to start."
)
@click.option(
    "--termination",
    "termination_ns",
    type=Duration(),
    default="1s",
    show_default=True,
    help="How long a deleted pod takes to end, at most its grace period, where it does not say so itself.",
)
@config_option
@ignore_extenders_option
@release_options
@click.option("--autoscaler", metavar="FILE", help="Run a cluster autoscaler: its groups of nodes, and how it works.")
@click.option(
    "--priority-cutoff",
    "--expendable-pods-priority-cutoff",
    "priority_cutoff",
    type=int,
    metavar="N",
    help="Below it pods neither get nodes from the autoscaler nor keep them; without it what the file says, or 0.",
)
@click.option("--rescheduler", metavar="FILE", help="Run a rescheduler: a ReschedulerConfiguration says how it works.")
@click.option(
    "--evict-on-delete",
    "evicts_on_delete",
    is_flag=True,
    help="Judge the deletion of a pod as an eviction, unless it is forced or the pod's annotation podium.dev/delete is "
    "direct.",
)
@click.option("--bind", "host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65_535), help="On which port; without it 7443, or any that is free.")
@click.option("--tls-cert", metavar="FILE", help="The server's certificate, in PEM; needed for others than loopback.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--client-ca", metavar="FILE", help="Who signs the certificates of clients that are let in.")
@click.option("--token-file", metavar="FILE", help="A token that clients have to show, readable by its owner alone.")
@click.option("--audit-log", metavar="FILE", help="Note each request that may change something, a line of JSON.")
@click.option(
    "--write-kubeconfig",
    metavar="FILE",
    help="Where to write the kubeconfig of this cluster; without it podium.kubeconfig, in the data directory if there "
    "is one.",
)
@click.option("--no-page", "has_page", flag_value=False, default=True, help="Show browsers no page.")
@adding(
    "without",
    _without,
    click.option("--no-controllers", is_flag=True, help="Run with a scheduler and kubelets alone."),
    *(click.option(f"--no-{name}", is_flag=True, help=what) for name, what in _SWITCHES.items()),
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def up(*, without: frozenset[str], **options: Any) -> int:
    """Run a Kubernetes control plane with simulated nodes in this process.

    kubectl and other clients reach it over HTTP, and a kubeconfig says how. Pods are scheduled, started and ended as on
    real nodes, but no containers run. With a COMMAND it is run with KUBECONFIG set; when it ends, so does all else, and
    its exit code is the answer.
    """
    from podium.api.collector import collector_paused

    # What modules make stays, and there is nothing to be collected.
    with collector_paused():
        from podium.app.serving.run import Wanted, run

    return run(Wanted(without=without, **options))
