"""`podium admission`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import click

from podium.app.console.command import Command
from podium.app.console.options import Duration, config_option, release_options
from podium.app.live.options import ProgramOptions, program_options

_SECOND = 10**9
_EPILOG = """
\b
Examples: with a certificate that cert-manager rotates; with one of its own
  podium admission --port 10280 --tls-cert-file tls.crt --tls-private-key-file tls.key
  podium admission --port 10280 --self-signed podium-admission

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_EPILOG)
@config_option
@release_options
@click.option(
    "--self-signed",
    metavar="NAME",
    default="",
    help="Make a certificate for this ValidatingWebhookConfiguration, renew it, and write its authority there.",
)
@click.option(
    "--time-limit", type=Duration(), default="100ms", show_default=True, help="Answer without warnings after this time."
)
@click.option(
    "--reviews", type=click.IntRange(1, 1_000), default=16, show_default=True, help="Reviews in progress at a time."
)
@program_options()
def admission(*, config: str | None, program: ProgramOptions, self_signed: str, **given: Any) -> None:
    """Warn users whose pods would find no node, or preempt others: a validating admission webhook.

    It answers reviews of pods and workloads at /validate, and allows every request. Decisions are those of the
    cluster's scheduler, about the cluster as its watches show it.
    """
    from podium.api.errors import InputError
    from podium.app.admission.certificates import CERTIFICATE, KEY
    from podium.app.admission.webhook import AdmissionSettings, LiveAdmission
    from podium.framework.settings.configuration import default_configuration, load_configuration

    configuration = load_configuration(config) if config else default_configuration()
    fields = program.of_program(configuration, "", elects=False)
    with ExitStack() as ending:
        folder = ""
        if self_signed:
            if fields["health"].certificate_file:
                raise InputError("--self-signed and --tls-cert-file exclude each other")
            folder = ending.enter_context(TemporaryDirectory(prefix="podium-admission-"))
            files = {"certificate_file": f"{folder}/{CERTIFICATE}", "key_file": f"{folder}/{KEY}"}
            fields["health"] = replace(fields["health"], **files)
        settings = AdmissionSettings(
            configuration=configuration,
            release=given["release"],
            limit_s=given["time_limit"] / _SECOND,
            concurrency=given["reviews"],
            self_signed_for=self_signed,
            certificate_folder=folder,
            dry_run=True,
            **fields,
        )
        if settings.health.port is None:
            raise InputError("the webhook needs a port: give it --port")
        program.run(LiveAdmission, settings, configuration)
