"""The command-line options of all programs on a cluster, and the settings that follow from them."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from podium.app.console.options import ClusterSource, Decorator, Duration, adding, ledger_age_option

if TYPE_CHECKING:
    from podium.app.live.live_program import LiveProgram
    from podium.app.live.logs import Log
    from podium.client.credentials import ClusterAccess
    from podium.framework.settings.configuration import Configuration


_SECOND = 10**9
_ACCESS = (
    click.option("--kubeconfig", metavar="FILE", default="", help="The kubeconfig; default: KUBECONFIG."),
    click.option("--context", metavar="NAME", default="", help="The context; default: the current one."),
)
_HEALTH = ("host", "port", "certificate_file", "key_file", "token_file", "has_page", "page_token_file")
_LEASE = ("elects", "namespace", "name", "duration_ns", "renew_deadline_ns", "retry_period_ns")
_OWN = ("concurrency", "qps", "burst", "request_timeout", "ledger", "ledger_age_ns", "log_format", "verbosity")
_LEDGER = (
    click.option(
        "--ledger", metavar="FILE", default="", help="Record disruptions in this file, for podium ledger -f FILE."
    ),
    ledger_age_option,
)
_OTHERS = (
    click.option(
        "--bind-address", "host", default="127.0.0.1", show_default=True, help="The address of health and metrics."
    ),
    click.option(
        "--port",
        "--secure-port",
        "port",
        type=click.IntRange(0, 65535),
        help="The port of health and metrics; 0: any free port. Default: none.",
    ),
    click.option("--tls-cert-file", "certificate_file", metavar="FILE", default="", help="The certificate for HTTPS."),
    click.option("--tls-private-key-file", "key_file", metavar="FILE", default="", help="The key of the certificate."),
    click.option(
        "--metrics-token-file", "token_file", metavar="FILE", default="", help="The token that /metrics requires."
    ),
    click.option("--page", "has_page", is_flag=True, help="Serve the web page of the cluster on that port."),
    click.option("--page-token-file", metavar="FILE", default="", help="The token that the web page requires."),
    click.option(
        "--concurrency", type=click.IntRange(1, 1_000), default=32, show_default=True, help="Concurrent requests."
    ),
    click.option("--kube-api-qps", "qps", type=click.FloatRange(0), help="Requests per second; default: unlimited."),
    click.option(
        "--kube-api-burst", "burst", type=click.IntRange(1), help="Burst of requests beyond that; default: 100."
    ),
    click.option("--request-timeout", type=Duration(), default="30s", show_default=True),
    click.option("--allow-exec-plugins", is_flag=True, help="Run the kubeconfig's credential plugins."),
    *_LEDGER,
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option("-v", "--verbosity", type=click.IntRange(0, 10), default=0, help="The log verbosity."),
)


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """The cluster of a program, and its other options, ``given`` by parameter names; None and "" for missing ones."""

    cluster: ClusterSource
    given: Mapping[str, Any]

    def of_program(self, configuration: Configuration, lease_name: str, *, elects: bool) -> dict[str, Any]:
        """Return the fields of `ProgramSettings` that follow from these options and the ``configuration``.

        ``elects``: replicas elect a leader by default. Raises InputError for invalid combinations.
        """
        from podium.app.live.live_program import lease_of
        from podium.app.live.metrics import HealthSettings
        from podium.client.transport import TransportSettings

        given, connection = self.given, configuration.client_connection
        # Unique for each process, in kube-scheduler's form.
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        lease = {name: given[f"lease_{name}"] for name in _LEASE}
        return {
            "identity": identity,
            "lease": lease_of(identity, lease, configuration, lease_name) if elects else None,
            "allows_exec": self.cluster.allows_exec_plugins,
            "health": HealthSettings(**{name: given[name] for name in _HEALTH}),
            "transport": TransportSettings(
                concurrency=given["concurrency"],
                per_second=connection.qps if given["qps"] is None else given["qps"],
                burst=given["burst"] or connection.burst or 100,
            ),
            "request_timeout_s": given["request_timeout"] / _SECOND,
            "ledger": given["ledger"] or "",
            "ledger_kept_seconds": (given["ledger_age_ns"] or 0) / _SECOND,
            **{name: given[name] for name in ("log_format", "verbosity")},
        }

    def run(
        self, make: Callable[[ClusterAccess, Any, Log], LiveProgram], settings: Any, configuration: Configuration
    ) -> NoReturn:
        """Run a program on the cluster, and exit with its code. Raises InputError for an address without protection."""
        from podium.app.live.live_program import run_program
        from podium.client.kubeconfig import find_access

        settings.health.check()
        kubeconfig = self.cluster.kubeconfig or configuration.client_connection.kubeconfig
        access = find_access(os.environ, kubeconfig, self.cluster.context)
        sys.exit(run_program(settings, lambda log: make(access, settings, log)))


def program_options(lease_name: str = "") -> Decorator[Any]:
    """Add the options of a program; the command gets them as ``program``.

    ``lease_name`` is the default name of its Lease. Without one, the program only reads.
    """
    names = {*_OWN, *_HEALTH, *(f"lease_{name}" for name in _LEASE)}

    def program_of(given: dict[str, Any]) -> ProgramOptions:
        own = {name: given.pop(name, None) for name in names}
        named = (given.pop(name) for name in ("context", "kubeconfig", "allow_exec_plugins"))
        return ProgramOptions(ClusterSource(*named), own)

    prefix = "--leader-elect"
    times = {"lease-duration": "15s", "renew-deadline": "10s", "retry-period": "2s"}
    lease = (
        click.option(
            f"{prefix}/--no-leader-elect", "lease_elects", default=None, help="Work only as the leader; the default."
        ),
        click.option(f"{prefix}-resource-namespace", "lease_namespace", metavar="NAME", help="Default: kube-system."),
        click.option(f"{prefix}-resource-name", "lease_name", metavar="NAME", help=f"Default: {lease_name}."),
        *(
            click.option(
                f"{prefix}-{time}",
                f"lease_{time.removeprefix('lease-').replace('-', '_')}_ns",
                type=Duration(),
                help=f"Default: {default}.",
            )
            for time, default in times.items()
        ),
    )
    if not lease_name:
        return adding("program", program_of, *_ACCESS, *(option for option in _OTHERS if option not in _LEDGER))
    return adding("program", program_of, *_ACCESS, *lease, *_OTHERS)
