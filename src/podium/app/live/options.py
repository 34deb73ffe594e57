"""The options that every program at a cluster has, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.app.console.options import Duration, ledger_age_option

if TYPE_CHECKING:
    from podium.app.live.health import HealthSettings
    from podium.client.transport import TransportSettings
    from podium.framework.settings.configuration import ClientConnectionConfiguration, Configuration

Answer = TypeVar("Answer")
Decorator = Callable[..., Any]

_SECOND = 10**9
_ACCESS = (
    click.option("--kubeconfig", metavar="FILE", default="", help="Which kubeconfig to use, in place of KUBECONFIG."),
    click.option("--context", metavar="NAME", default="", help="Its context, in place of the current one."),
)
_TELLING = (
    click.option("--bind-address", default="127.0.0.1", show_default=True, help="Where health and metrics are told."),
    click.option(
        "--port", "--secure-port", type=click.IntRange(0, 65535), help="The port for that; 0 takes any. Without: none."
    ),
    click.option("--tls-cert-file", metavar="FILE", default="", help="Tell it over TLS, with this certificate."),
    click.option("--tls-private-key-file", metavar="FILE", default="", help="The key of the certificate."),
    click.option("--metrics-token-file", metavar="FILE", default="", help="What who asks for metrics must show."),
    click.option("--page", "has_page", is_flag=True, help="Show browsers the cluster there, to look at."),
    click.option("--page-token-file", metavar="FILE", default="", help="What who wants to see it must show."),
    click.option(
        "--concurrency", type=click.IntRange(1, 1_000), default=32, show_default=True, help="Requests at once."
    ),
    click.option("--kube-api-qps", "qps", type=click.FloatRange(0), help="Requests a second; usually as many as come."),
    click.option("--kube-api-burst", "burst", type=click.IntRange(1), help="So many at once beyond that; usually 100."),
    click.option("--request-timeout", type=Duration(), default="30s", show_default=True),
    click.option("--allow-exec-plugins", is_flag=True, help="Let the kubeconfig have programs run for credentials."),
    click.option(
        "--ledger", metavar="FILE", default="", help="Keep an account of disruptions there, for podium ledger -f FILE."
    ),
    ledger_age_option,
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option("-v", "--verbosity", type=click.IntRange(0, 10), default=0, help="How much is logged."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """What the command line says; None and "" where it says nothing. Times are in nanoseconds."""

    kubeconfig: str
    context: str
    leader_elect: bool | None
    lease_namespace: str | None
    lease_name: str | None
    lease_duration: int | None
    renew_deadline: int | None
    retry_period: int | None
    bind_address: str
    port: int | None
    tls_cert_file: str
    tls_private_key_file: str
    metrics_token_file: str
    has_page: bool
    page_token_file: str
    concurrency: int
    qps: float | None
    burst: int | None
    request_timeout: int
    allow_exec_plugins: bool
    ledger: str
    ledger_age: int
    log_format: str
    verbosity: int

    def of_program(self, configuration: Configuration, lease_name: str, *, elects: bool) -> dict[str, Any]:
        """The fields of `ProgramSettings` that these options come to.

        What they do not say, ``configuration`` does; ``elects``: others may do the same work at the same time.
        Raises InputError for what does not go together.
        """
        from podium.app.live.leasing import LeaseOptions, lease_of, own_identity

        identity = own_identity()
        options = LeaseOptions(
            elects=self.leader_elect,
            namespace=self.lease_namespace,
            name=self.lease_name,
            duration_ns=self.lease_duration,
            renew_deadline_ns=self.renew_deadline,
            retry_period_ns=self.retry_period,
        )
        return {
            "identity": identity,
            "lease": lease_of(identity, options, configuration, lease_name) if elects else None,
            "allows_exec": self.allow_exec_plugins,
            "health": self._health(),
            "transport": self._transport(configuration.client_connection),
            "request_timeout_s": self.request_timeout / _SECOND,
            "ledger": self.ledger,
            "ledger_kept_seconds": self.ledger_age / _SECOND,
            "log_format": self.log_format,
            "verbosity": self.verbosity,
        }

    def _health(self) -> HealthSettings:
        from podium.app.live.health import HealthSettings

        return HealthSettings(
            host=self.bind_address,
            port=self.port,
            certificate_file=self.tls_cert_file,
            key_file=self.tls_private_key_file,
            token_file=self.metrics_token_file,
            has_page=self.has_page,
            page_token_file=self.page_token_file,
        )

    def _transport(self, connection: ClientConnectionConfiguration) -> TransportSettings:
        from podium.client.transport import TransportSettings

        return TransportSettings(
            concurrency=self.concurrency,
            per_second=connection.qps if self.qps is None else self.qps,
            burst=self.burst or connection.burst or 100,
        )


def program_options(lease_name: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """The options, given to the command as `program`: ProgramOptions; ``lease_name`` is the usual name of its Lease."""

    def decorate(command: Callable[..., Answer]) -> Callable[..., Answer]:
        @wraps(command)
        def with_program(**given: Any) -> Answer:
            own = {name: given.pop(name) for name in ProgramOptions.__dataclass_fields__}
            return command(program=ProgramOptions(**own), **given)

        decorated: Callable[..., Answer] = with_program
        for option in reversed((*_ACCESS, *_lease_options(lease_name), *_TELLING)):
            decorated = option(decorated)
        return decorated

    return decorate


def _lease_options(name: str) -> tuple[Decorator, ...]:
    return (
        click.option(
            "--leader-elect/--no-leader-elect",
            default=None,
            help="Work only as the leader, which is usual.",
        ),
        click.option(
            "--leader-elect-resource-namespace", "lease_namespace", metavar="NAME", help="Usually kube-system."
        ),
        click.option("--leader-elect-resource-name", "lease_name", metavar="NAME", help=f"Usually {name}."),
        click.option("--leader-elect-lease-duration", "lease_duration", type=Duration(), help="Usually 15s."),
        click.option("--leader-elect-renew-deadline", "renew_deadline", type=Duration(), help="Usually 10s."),
        click.option("--leader-elect-retry-period", "retry_period", type=Duration(), help="Usually 2s."),
    )
