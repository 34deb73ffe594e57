"""`podium up`."""

from __future__ import annotations

from typing import Any

import click

from podium.app.console import options as shared
from podium.app.console.command import Command, option
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
@option("--nodes", "The number of nodes to create.", type=click.IntRange(min=0, max=100_000), default=0, metavar="N")
@option("--node-template", "A Node without a name: the template of these nodes.", metavar="FILE")
@option(
    "--data-dir",
    "The directory that stores the cluster and its Kubernetes version for the next start; "
    "--kubernetes-version can upgrade it by one minor version.",
    metavar="DIR",
)
@option("--accept-loss accepts_loss", "Start even if the last writes to the data directory were lost.", is_flag=True)
@option("--no-ledger has_ledger", "Do not record disruptions in the data directory.", flag_value=False, default=True)
@shared.ledger_age_option
@option(
    "--speed",
    "The speed of time, as a factor of real time.",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    metavar="X",
)
@option("--seed", "The seed of uids and of choices between equal nodes; default: random.", type=int)
@option("--start-delay start_delay_ns", "How long a bound pod takes to start.", type=shared.Duration(), default=0)
@option(
    "--termination termination_ns",
    "How long a deleted pod takes to end, up to its grace period, unless its annotation says otherwise.",
    type=shared.Duration(),
    default="1s",
    show_default=True,
)
@shared.config_option
@shared.ignore_extenders_option
@shared.release_options
@option("--autoscaler", "Run a cluster autoscaler with these node groups and settings.", metavar="FILE")
@option(
    "--priority-cutoff --expendable-pods-priority-cutoff priority_cutoff",
    "The autoscaler ignores pods with a lower priority; default: that of the file.",
    type=int,
    metavar="N",
)
@option("--rescheduler", "Run a rescheduler with this ReschedulerConfiguration.", metavar="FILE")
@option(
    "--evict-on-delete evicts_on_delete",
    "Treat the deletion of a pod as an eviction, unless it is forced or the pod's annotation podium.dev/delete is "
    "direct.",
    is_flag=True,
)
@option("--bind host", "The address to listen on.", metavar="ADDRESS", default="127.0.0.1", show_default=True)
@option("--port", "The port; default: 7443, or any free port.", type=click.IntRange(0, 65_535))
@option("--tls-cert", "The server's certificate, in PEM; required for addresses other than loopback.", metavar="FILE")
@option("--tls-key", "Its private key.", metavar="FILE")
@option("--client-ca", "The CA of client certificates.", metavar="FILE")
@option("--token-file", "A token that clients must send; only its owner may read the file.", metavar="FILE")
@option(
    "--authorization",
    "Let all clients do everything, or what their roles and bindings allow.",
    type=click.Choice(("none", "rbac")),
    default="none",
    show_default=True,
)
@option("--audit-log-path audit_log", "Log each request that may change objects, as a line of JSON.", metavar="FILE")
@option(
    "--write-kubeconfig",
    "Where to write the kubeconfig of this cluster; default: podium.kubeconfig, in the data directory if any.",
    metavar="FILE",
)
@option("--no-page has_page", "Do not serve the web page.", flag_value=False, default=True)
@shared.adding(
    "without",
    _without,
    option("--no-controllers", "Run only a scheduler and kubelets.", is_flag=True),
    *(option(f"--no-{name}", what, is_flag=True) for name, what in _SWITCHES.items()),
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
