"""`podium up`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.command import Command
from podium.app.console.options import (
    Duration,
    config_option,
    ignore_extenders_option,
    ledger_age_option,
    release_options,
    validate_option,
)
from podium.app.console.source import optional_source_options, override_option
from podium.controlplane.component_names import COLLECTORS, CONTROLLERS, KUBELET, SCHEDULER, SWITCHABLE

if TYPE_CHECKING:
    from podium.api.versions.choice import ReleaseChoice
    from podium.api.warnings import Validation
    from podium.app.console.source import Source

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_TOLD = {SCHEDULER: "Let another scheduler do the work.", KUBELET: "Let others say how nodes and pods fare."}
_EPILOG = """
\b
Examples: a hundred nodes until Ctrl-C, and a command with a cluster of its own
  podium up --nodes 100
  podium up --nodes 3 -- kubectl get nodes -o wide
"""


def _switches(command: Decorated) -> Decorated:
    """An option for each component that can be left out."""
    for name in reversed(SWITCHABLE):
        what = _TOLD.get(name, f"Run without the {name}.")
        command = click.option(f"--no-{name}", f"no_{name.replace('-', '_')}", is_flag=True, help=what)(command)
    return command


@click.command(cls=Command, epilog=_EPILOG)
@optional_source_options
@override_option
@validate_option
@click.option(
    "--nodes", type=click.IntRange(min=0, max=100_000), default=0, metavar="N", help="How many nodes to make."
)
@click.option("--node-template", metavar="FILE", help="A Node, without a name, after which they are made.")
@click.option("--data-dir", metavar="DIR", help="Where everything is kept, for the next start too.")
@click.option("--no-ledger", is_flag=True, help="Keep no account of disruptions there.")
@ledger_age_option
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    metavar="X",
    help="How many times as fast as the clock time passes.",
)
@click.option("--seed", type=int, help="Chooses uids, and between equal nodes; by chance, unless given.")
@click.option("--start-delay", type=Duration(), default=0, help="How long a bound pod takes to start.")
@click.option(
    "--termination",
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
    is_flag=True,
    help="Judge the deletion of a pod as an eviction, unless it is forced or the pod's annotation podium.dev/delete is "
    "direct.",
)
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Where to listen.")
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
@click.option("--no-page", is_flag=True, help="Show browsers no page.")
@click.option("--no-controllers", is_flag=True, help="Run with a scheduler and kubelets alone.")
@_switches
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
def up(
    *,
    source: Source,
    validation: Validation | None,
    nodes: int,
    node_template: str | None,
    data_dir: str | None,
    no_ledger: bool,
    ledger_age: int,
    speed: float,
    seed: int | None,
    start_delay: int,
    termination: int,
    config: str | None,
    ignore_extenders: bool,
    release: ReleaseChoice,
    autoscaler: str | None,
    priority_cutoff: int | None,
    rescheduler: str | None,
    evict_on_delete: bool,
    bind: str,
    port: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    client_ca: str | None,
    token_file: str | None,
    audit_log: str | None,
    write_kubeconfig: str | None,
    no_page: bool,
    no_controllers: bool,
    command: tuple[str, ...],
    **switches: bool,
) -> int:
    """Run a Kubernetes control plane with simulated nodes in this process.

    kubectl and other clients reach it over HTTP, and a kubeconfig says how. Pods are scheduled, started and ended as on
    real nodes, but no containers run. With a COMMAND it is run with KUBECONFIG set; when it ends, so does all else, and
    its exit code is the answer.
    """
    from podium.api.collector import collector_paused

    # What modules make stays, and there is nothing to be collected.
    with collector_paused():
        from podium.app.serving.run import Wanted, run

    wanted = Wanted(
        source=source,
        validation=validation,
        nodes=nodes,
        node_template=node_template,
        data_dir=data_dir,
        speed=speed,
        seed=seed,
        start_delay_ns=start_delay,
        termination_ns=termination,
        config=config,
        ignore_extenders=ignore_extenders,
        release=release,
        autoscaler=autoscaler,
        priority_cutoff=priority_cutoff,
        rescheduler=rescheduler,
        evicts_on_delete=evict_on_delete,
        host=bind,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        client_ca=client_ca,
        token_file=token_file,
        audit_log=audit_log,
        kubeconfig=write_kubeconfig,
        has_page=not no_page,
        has_ledger=not no_ledger,
        ledger_age_ns=ledger_age,
        without=frozenset(_left_out(switches, no_controllers=no_controllers)),
        command=command,
    )
    return run(wanted)


def _left_out(switches: dict[str, bool], *, no_controllers: bool) -> list[str]:
    controllers = (*CONTROLLERS, *COLLECTORS) if no_controllers else ()
    return [name for name in SWITCHABLE if name in controllers or switches[f"no_{name.replace('-', '_')}"]]
