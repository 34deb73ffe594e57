"""`podium scheduler`."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command
from podium.app.console.options import Duration, config_option, feature_gates_option

if TYPE_CHECKING:
    from podium.app.live.settings import LiveSettings
    from podium.client.access.cluster_access import ClusterAccess
    from podium.framework.settings.feature_gates import FeatureGates

_SECOND = 10**9
_EPILOG = """
\b
Examples: what it would do at the cluster of the current context; then do it
  podium scheduler --dry-run
  podium scheduler --config scheduler.yaml --decisions decisions.jsonl

It ends with 0 when it is told to stop (SIGINT, SIGTERM), and with 1 when it may not lead any more.
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.option("--kubeconfig", metavar="FILE", default="", help="Which kubeconfig to use, in place of KUBECONFIG.")
@click.option("--context", metavar="NAME", default="", help="Its context, in place of the current one.")
@config_option
@feature_gates_option
@click.option("--dry-run", is_flag=True, help="Decide and say so, and write nothing: needs only get, list and watch.")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=None,
    help="Work only as the leader, which is usual. Without this and what follows, as the configuration says.",
)
@click.option("--leader-elect-resource-namespace", "lease_namespace", metavar="NAME", help="Usually kube-system.")
@click.option("--leader-elect-resource-name", "lease_name", metavar="NAME", help="Usually kube-scheduler.")
@click.option("--leader-elect-lease-duration", "lease_duration", type=Duration(), help="Usually 15s.")
@click.option("--leader-elect-renew-deadline", "renew_deadline", type=Duration(), help="Usually 10s.")
@click.option("--leader-elect-retry-period", "retry_period", type=Duration(), help="Usually 2s.")
@click.option(
    "--pause-preemption-file",
    "pause_file",
    metavar="FILE",
    default="",
    help="Preempt nobody while there is such a file.",
)
@click.option("--trim-avoid-lists", is_flag=True, help="Take off nodes' avoid lists what is over, as the leader.")
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where health and metrics are told.")
@click.option(
    "--port", "--secure-port", type=click.IntRange(0, 65535), help="The port for that; 0 takes any. Without: none."
)
@click.option("--tls-cert-file", metavar="FILE", default="", help="Tell it over TLS, with this certificate.")
@click.option("--tls-private-key-file", metavar="FILE", default="", help="The key of the certificate.")
@click.option("--metrics-token-file", metavar="FILE", default="", help="What who asks for metrics must show.")
@click.option("--decisions", metavar="FILE", default="", help="Write each decision there, a line of JSON.")
@click.option("--concurrency", type=click.IntRange(1, 1_000), default=32, show_default=True, help="Requests at once.")
@click.option("--kube-api-qps", "qps", type=click.FloatRange(0), help="Requests a second; usually as many as come.")
@click.option("--kube-api-burst", "burst", type=click.IntRange(1), help="So many at once beyond that; usually 100.")
@click.option("--request-timeout", type=Duration(), default="30s", show_default=True)
@click.option("--allow-exec-plugins", is_flag=True, help="Let the kubeconfig have programs run for credentials.")
@click.option(
    "--allow-insecure-preemption", is_flag=True, help="Preempt though the API server's certificate is not checked."
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbosity", type=click.IntRange(0, 10), default=0, help="How much is logged.")
def scheduler(
    *,
    kubeconfig: str,
    context: str,
    config: str | None,
    feature_gates: FeatureGates,
    dry_run: bool,
    leader_elect: bool | None,
    lease_namespace: str | None,
    lease_name: str | None,
    lease_duration: int | None,
    renew_deadline: int | None,
    retry_period: int | None,
    pause_file: str,
    trim_avoid_lists: bool,
    bind_address: str,
    port: int | None,
    tls_cert_file: str,
    tls_private_key_file: str,
    metrics_token_file: str,
    decisions: str,
    concurrency: int,
    qps: float | None,
    burst: int | None,
    request_timeout: int,
    allow_exec_plugins: bool,
    allow_insecure_preemption: bool,
    log_format: str,
    verbosity: int,
) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does.

    It watches the API server of a kubeconfig or, within a pod, of the pod's own cluster; binds pods, preempts, and says
    in events and conditions why pods wait. Several of them elect a leader.
    """
    from podium.app.live.health import HealthSettings
    from podium.app.live.leasing import LeaseOptions, lease_of
    from podium.app.live.program import check_settings
    from podium.app.live.settings import LiveSettings
    from podium.client.access.in_cluster import find_access
    from podium.client.transport import TransportSettings
    from podium.framework.settings.configuration import default_configuration, load_configuration

    # As kube-scheduler's: it tells apart two on one machine, and one that begins anew from itself before.
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    configuration = load_configuration(config) if config else default_configuration()
    connection = configuration.client_connection
    options = LeaseOptions(
        elects=leader_elect,
        namespace=lease_namespace,
        name=lease_name,
        duration_ns=lease_duration,
        renew_deadline_ns=renew_deadline,
        retry_period_ns=retry_period,
    )
    settings = LiveSettings(
        configuration=configuration,
        feature_gates=feature_gates,
        identity=identity,
        lease=None if dry_run else lease_of(identity, options, configuration),
        dry_run=dry_run,
        trims_avoid_lists=trim_avoid_lists,
        pause_file=pause_file,
        allows_exec=allow_exec_plugins,
        allows_insecure_preemption=allow_insecure_preemption,
        health=HealthSettings(
            host=bind_address,
            port=port,
            certificate_file=tls_cert_file,
            key_file=tls_private_key_file,
            token_file=metrics_token_file,
        ),
        transport=TransportSettings(
            concurrency=concurrency,
            per_second=connection.qps if qps is None else qps,
            burst=burst or connection.burst or 100,
        ),
        request_timeout_s=request_timeout / _SECOND,
        decisions=decisions,
        log_format="json" if log_format == "json" else "text",
        verbosity=verbosity,
    )
    access = find_access(os.environ, kubeconfig or connection.kubeconfig, context)
    check_settings(access, settings)
    sys.exit(_run(access, settings))


def _run(access: ClusterAccess, settings: LiveSettings) -> int:
    """Run the program; its exit code."""
    from podium.app.live.logs import Log
    from podium.app.live.program import LiveScheduler
    from podium.driver.clock import SystemClock
    from podium.server.http import loops

    async def main() -> int:
        log = Log(SystemClock().now, settings.log_format, settings.verbosity)
        program = LiveScheduler(access, settings, log)
        program.stop_on_signals()
        return await program.run()

    return loops.run(main())
