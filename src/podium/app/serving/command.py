"""`podium up`."""

from __future__ import annotations

from typing import Any

import click

from podium.app.console import options as shared
from podium.app.console.command import Command
from podium.controlplane.component_names import COLLECTORS, CONTROLLERS, KUBELET, SCHEDULER, SWITCHABLE

_EPILOG = """
\b
Examples: run 100 nodes until Ctrl-C; run a command with its own cluster
  podium up --nodes 100
  podium up --nodes 3 -- kubectl get nodes -o wide
"""


_SWITCHES = {
    **{name: f"Run without the {name}." for name in SWITCHABLE},
    SCHEDULER: "Run without the scheduler; run another one instead.",
    KUBELET: "Run without kubelets; other clients report the status of nodes and pods.",
}


def _without(given: dict[str, Any]) -> frozenset[str]:
    left_out = {name for name in SWITCHABLE if given.pop(f"no_{name.replace('-', '_')}")}
    return frozenset(left_out | {*CONTROLLERS, *COLLECTORS} if given.pop("no_controllers") else left_out)


@click.command(cls=Command, epilog=_EPILOG)
@shared.source_options
@shared.validate_option
@click.option(
    "--nodes", type=click.IntRange(min=0, max=100_000), default=0, metavar="N", help="The number of nodes to create."
)
@click.option("--node-template", metavar="FILE", help="A Node without a name: the template of these nodes.")
@click.option(
    "--data-dir",
    metavar="DIR",
    help="The directory that stores the cluster and its Kubernetes version for the next start; "
    "--kubernetes-version can upgrade it by one minor version.",
)
@click.option("--accept-loss", "accepts_loss", is_flag=True, help="Start even if the last writes to it were lost.")
@click.option("--no-ledger", "has_ledger", flag_value=False, default=True, help="Do not record disruptions in it.")
@shared.ledger_age_option
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    metavar="X",
    help="The speed of time, as a factor of real time.",
)
@click.option("--seed", type=int, help="The seed of uids and of choices between equal nodes; default: random.")
@click.option(
    "--start-delay", "start_delay_ns", type=shared.Duration(), default=0, help="How long a bound pod takes to start."
)
@click.option(
    "--termination",
    "termination_ns",
    type=shared.Duration(),
    default="1s",
    show_default=True,
    help="How long a deleted pod takes to end, up to its grace period, unless its annotation says otherwise.",
)
@shared.config_option
@shared.ignore_extenders_option
@shared.release_options
@click.option("--autoscaler", metavar="FILE", help="Run a cluster autoscaler with these node groups and settings.")
@click.option(
    "--priority-cutoff",
    "--expendable-pods-priority-cutoff",
    "priority_cutoff",
    type=int,
    metavar="N",
    help="The autoscaler ignores pods with a lower priority; default: that of the file, or 0.",
)
@click.option("--rescheduler", metavar="FILE", help="Run a rescheduler with this ReschedulerConfiguration.")
@click.option(
    "--evict-on-delete",
    "evicts_on_delete",
    is_flag=True,
    help="Treat the deletion of a pod as an eviction, unless it is forced or the pod's annotation podium.dev/delete is "
    "direct.",
)
@click.option(
    "--bind", "host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on."
)
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; default: 7443, or any free port.")
@click.option(
    "--tls-cert", metavar="FILE", help="The server's certificate, in PEM; required for addresses other than loopback."
)
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--client-ca", metavar="FILE", help="The CA of client certificates.")
@click.option("--token-file", metavar="FILE", help="A token that clients must send; only its owner may read the file.")
@click.option(
    "--authorization",
    type=click.Choice(("none", "rbac")),
    default="none",
    show_default=True,
    help="Let all clients do everything, or what their roles and bindings allow.",
)
@click.option("--audit-log", metavar="FILE", help="Log each request that may change objects, as a line of JSON.")
@click.option(
    "--write-kubeconfig",
    metavar="FILE",
    help="Where to write the kubeconfig of this cluster; default: podium.kubeconfig, in the data directory if any.",
)
@click.option("--no-page", "has_page", flag_value=False, default=True, help="Do not serve the web page.")
@shared.adding(
    "without",
    _without,
    click.option("--no-controllers", is_flag=True, help="Run only a scheduler and kubelets."),
    *(click.option(f"--no-{name}", is_flag=True, help=what) for name, what in _SWITCHES.items()),
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def up(*, without: frozenset[str], **options: Any) -> int:
    """Run a Kubernetes control plane with simulated nodes in this process.

    kubectl and other clients reach it over HTTP with the kubeconfig that it writes. Pods are scheduled, started and
    ended as on real nodes, but no containers run. A COMMAND runs with KUBECONFIG set; when it ends, the cluster ends,
    too, with the exit code of the command.
    """
    from podium.api.collector import collector_paused

    # Objects of modules are never freed, so collections during imports are useless.
    with collector_paused():
        from podium.app.serving.run import UpOptions, run

    return run(UpOptions(without=without, **options))
