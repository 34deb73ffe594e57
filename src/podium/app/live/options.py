"""The command-line options of all programs on a cluster, and the settings that follow from them."""

from __future__ import annotations

import os
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from podium.api.times import SECOND
from podium.app.console.command import option
from podium.app.console.options import ClusterSource, Decorator, Duration, adding, ledger_age_option

if TYPE_CHECKING:
    from podium.api.versions.choice import ReleaseChoice
    from podium.app.live.live_program import LiveProgram, ProgramSettings
    from podium.app.live.logs import Log
    from podium.app.live.metrics import HealthSettings
    from podium.client.credentials import ClusterAccess
    from podium.framework.settings.configuration import Configuration

Settings = TypeVar("Settings", bound="ProgramSettings")

_ACCESS = (
    option("--kubeconfig", "The kubeconfig; default: KUBECONFIG.", metavar="FILE", default=""),
    option("--context", "The context; default: the current one.", metavar="NAME", default=""),
)
_HEALTH = ("host", "port", "certificate_file", "key_file", "token_file", "has_page", "page_token_file")
_LEASE = ("elects", "namespace", "name", "duration_ns", "renew_deadline_ns", "retry_period_ns")
_OWN = ("concurrency", "qps", "burst", "request_timeout", "ledger", "ledger_age_ns", "log_format", "verbosity")
_LEDGER = (
    option("--ledger", "Record disruptions in this file, for podium ledger -f FILE.", metavar="FILE", default=""),
    ledger_age_option,
)
_OTHERS = (
    option("--bind-address host", "The address of health and metrics.", default="127.0.0.1", show_default=True),
    option(
        "--port --secure-port port",
        "The port of health and metrics; 0: any free port. Default: none.",
        type=click.IntRange(0, 65535),
    ),
    option("--tls-cert-file certificate_file", "The certificate for HTTPS.", metavar="FILE", default=""),
    option("--tls-private-key-file key_file", "The key of the certificate.", metavar="FILE", default=""),
    option("--metrics-token-file token_file", "The token that /metrics requires.", metavar="FILE", default=""),
    option("--page has_page", "Serve the web page of the cluster on that port.", is_flag=True),
    option("--page-token-file", "The token that the web page requires.", metavar="FILE", default=""),
    option("--concurrency", "Concurrent requests.", type=click.IntRange(1, 1_000), default=32, show_default=True),
    option("--kube-api-qps qps", "Requests per second; default: unlimited.", type=click.FloatRange(0)),
    option("--kube-api-burst burst", "Burst of requests beyond that; default: 100.", type=click.IntRange(1)),
    click.option("--request-timeout", type=Duration(), default="30s", show_default=True),
    option("--allow-exec-plugins", "Run the kubeconfig's credential plugins.", is_flag=True),
    *_LEDGER,
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    option("-v --verbosity", "The log verbosity.", type=click.IntRange(0, 10), default=0),
)


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """The options of a program: its cluster, the schedulers' configuration and version, and others by parameter names.

    ``connecting`` is the configuration of its connection and its Lease, which by default has the name ``lease_name``.
    """

    cluster: ClusterSource
    configuration: Configuration
    release: ReleaseChoice
    connecting: Configuration
    lease_name: str
    given: Mapping[str, Any]

    @property
    def health(self) -> HealthSettings:
        """The address of health checks, metrics and the page."""
        from podium.app.live.metrics import HealthSettings

        return HealthSettings(**{name: self.given[name] for name in _HEALTH})

    def settings(self, kind: type[Settings], *, dry_run: bool = True, **own: Any) -> Settings:
        """Return the settings of a program, with its ``own`` fields; replicas elect a leader if it writes.

        Raises InputError for invalid combinations.
        """
        from podium.app.live.live_program import lease_of
        from podium.client.transport import TransportSettings

        given, connection = self.given, self.connecting.client_connection
        own.setdefault("health", self.health)
        # Unique for each process, in kube-scheduler's form.
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        lease = {name: given[f"lease_{name}"] for name in _LEASE}
        return kind(
            configuration=self.configuration,
            release=self.release,
            dry_run=dry_run,
            identity=identity,
            lease=None if dry_run else lease_of(identity, lease, self.connecting, self.lease_name),
            allows_exec=self.cluster.allows_exec_plugins,
            transport=TransportSettings(
                concurrency=given["concurrency"],
                per_second=connection.qps if given["qps"] is None else given["qps"],
                burst=given["burst"] or connection.burst or 100,
            ),
            request_timeout_s=given["request_timeout"] / SECOND,
            ledger=given["ledger"] or "",
            ledger_kept_seconds=(given["ledger_age_ns"] or 0) / SECOND,
            log_format=given["log_format"],
            verbosity=given["verbosity"],
            **own,
        )

    def run(
        self,
        make: Callable[[ClusterAccess, Any, Log], LiveProgram],
        settings: ProgramSettings,
        check: Callable[[ClusterAccess, Any], None] = lambda access, settings: settings.health.check(),
    ) -> NoReturn:
        """Run a program on the cluster, and exit with its code.

        ``check`` raises InputError for settings that do not fit the cluster, or an address without protection.
        """
        from podium.app.live.live_program import run_program
        from podium.client.kubeconfig import find_access

        kubeconfig = self.cluster.kubeconfig or self.connecting.client_connection.kubeconfig
        access = find_access(os.environ, kubeconfig, self.cluster.context)
        check(access, settings)
        sys.exit(run_program(settings, lambda log: make(access, settings, log)))


def program_options(lease_name: str = "", *, connects_by_config: bool = True) -> Decorator[Any]:
    """Add the options of a program besides `config_option` and `release_options`; the command gets all as ``program``.

    ``lease_name`` is the default name of its Lease. Without one, the program only reads. ``connects_by_config``: the
    schedulers' configuration is also that of its connection and its Lease.
    """
    names = {*_OWN, *_HEALTH, *(f"lease_{name}" for name in _LEASE)}

    def program_of(given: dict[str, Any]) -> ProgramOptions:
        from podium.framework.settings.configuration import default_configuration, load_configuration

        own = {name: given.pop(name, None) for name in names}
        named = (given.pop(name) for name in ("context", "kubeconfig", "allow_exec_plugins"))
        config, release = given.pop("config"), given.pop("release")
        configuration = load_configuration(config) if config else default_configuration()
        connecting = configuration if connects_by_config else default_configuration()
        return ProgramOptions(ClusterSource(*named), configuration, release, connecting, lease_name, own)

    prefix = "--leader-elect"
    times = {"lease-duration": "15s", "renew-deadline": "10s", "retry-period": "2s"}
    lease = (
        option(f"{prefix}/--no-leader-elect lease_elects", "Work only as the leader; the default.", default=None),
        option(f"{prefix}-resource-namespace lease_namespace", "Default: kube-system.", metavar="NAME"),
        option(f"{prefix}-resource-name lease_name", f"Default: {lease_name}.", metavar="NAME"),
        *(
            option(
                f"{prefix}-{time} lease_{time.removeprefix('lease-').replace('-', '_')}_ns",
                f"Default: {default}.",
                type=Duration(),
            )
            for time, default in times.items()
        ),
    )
    if not lease_name:
        return adding("program", program_of, *_ACCESS, *(option for option in _OTHERS if option not in _LEDGER))
    return adding("program", program_of, *_ACCESS, *lease, *_OTHERS)
