"""The programs that follow a cluster: `podium scheduler`, `podium exporter`, `podium admission` and `podium ui`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import click

from podium.api.times import SECOND
from podium.app.console.command import Command, option
from podium.app.console.options import Duration, config_option, release_options
from podium.app.live.options import ProgramOptions, program_options

_SCHEDULER_EPILOG = """
\b
Examples: a dry run on the cluster of the current context; then schedule its pods
  podium scheduler --dry-run
  podium scheduler --config scheduler.yaml --decisions decisions.jsonl

Exit codes: 0 after SIGINT or SIGTERM, 1 after it lost its lease.
"""


@click.command(cls=Command, epilog=_SCHEDULER_EPILOG)
@config_option
@release_options
@option("--dry-run", "Log decisions and write nothing; needs only get, list and watch.", is_flag=True)
@option("--pause-preemption-file pause_file", "Preempt no pods while this file exists.", metavar="FILE", default="")
@option("--trim-avoid-lists trims_avoid_lists", "When leading, remove expired entries of avoid lists.", is_flag=True)
@option("--decisions", "Append each decision to this file, as a line of JSON.", metavar="FILE", default="")
@option(
    "--allow-insecure-preemption allows_insecure_preemption",
    "Preempt even if the API server's certificate is not checked.",
    is_flag=True,
)
@program_options("kube-scheduler")
def scheduler(*, program: ProgramOptions, **own: Any) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does.

    It connects to the API server of a kubeconfig or, within a pod, of the pod's own cluster. It binds pods, preempts,
    and reports in events and conditions why pods are pending. Several replicas elect a leader.
    """
    from podium.app.live.live_program import LiveSettings
    from podium.app.live.live_scheduler import LiveScheduler, check_settings

    program.run(LiveScheduler, program.settings(LiveSettings, **own), check_settings)


_EXPORTER_EPILOG = """
\b
Examples: for the cluster of the current context; with headroom for the pods in a file
  podium exporter --port 10270
  podium exporter --port 10270 --shapes shapes.yaml --interval 1m

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_EXPORTER_EPILOG)
@config_option
@release_options
@option("--interval", "The time between evaluations, 1s or more.", type=Duration(), default="30s", show_default=True)
@option("--processes", "Processes that evaluate.", type=click.IntRange(1, 16), default=2, show_default=True)
@option("--shapes", "A file of Pods; the exporter counts how many more like each fit.", metavar="FILE", default="")
@option("--zone-label zone_labels", "A node label with the zone; the first that a node has counts.", multiple=True)
@option("--pool-label pool_labels", "A node label with the node pool; the first that a node has counts.", multiple=True)
@option("--rack-label rack_labels", "A node label with the rack; the first that a node has counts.", multiple=True)
@program_options()
def exporter(*, program: ProgramOptions, shapes: str, interval: int, processes: int, **given: Any) -> None:
    """Serve metrics and a report on which failures a cluster can take.

    For each node, zone, node pool and rack: if it fails now, does every pod find a place, and which workload breaks
    first? Further: headroom, fragmentation, pending pods by cause, and budgets in the way of drains. It only reads.
    """
    from podium.app.exporter.evaluation import EvaluationSettings, read_shapes
    from podium.app.exporter.exporter import ExporterSettings, LiveExporter

    if interval < SECOND:
        raise click.BadParameter("write 1s or more", param_hint="--interval")
    labels = {name: keys for name, keys in given.items() if keys}
    evaluation = EvaluationSettings(**labels, shapes=read_shapes(shapes) if shapes else ())
    settings = program.settings(ExporterSettings, evaluation=evaluation, interval_ns=interval, processes=processes)
    program.run(LiveExporter, settings)


_ADMISSION_EPILOG = """
\b
Examples: with a certificate that cert-manager rotates; with one of its own
  podium admission --port 10280 --tls-cert-file tls.crt --tls-private-key-file tls.key
  podium admission --port 10280 --self-signed podium-admission

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_ADMISSION_EPILOG)
@config_option
@release_options
@option(
    "--self-signed",
    "Make a certificate for this ValidatingWebhookConfiguration, renew it, and write it there as trusted.",
    metavar="NAME",
    default="",
)
@option("--time-limit", "Answer without warnings after this time.", type=Duration(), default="100ms", show_default=True)
@option("--reviews", "Reviews in progress at a time.", type=click.IntRange(1, 1_000), default=16, show_default=True)
@program_options()
def admission(*, program: ProgramOptions, self_signed: str, time_limit: int, reviews: int) -> None:
    """Warn users whose pods would find no node, or preempt others: a validating admission webhook.

    It answers reviews of pods and workloads at /validate, and allows every request. Decisions are those of the
    cluster's scheduler, about the cluster as its watches show it.
    """
    from podium.api.errors import InputError
    from podium.app.admission.certificate import CERTIFICATE, KEY
    from podium.app.admission.webhook import AdmissionSettings, LiveAdmission

    own: dict[str, Any] = {"limit_s": time_limit / SECOND, "concurrency": reviews}
    with ExitStack() as ending:
        if self_signed:
            if program.health.certificate_file:
                raise InputError("--self-signed and --tls-cert-file exclude each other")
            folder = ending.enter_context(TemporaryDirectory(prefix="podium-admission-"))
            health = replace(program.health, certificate_file=f"{folder}/{CERTIFICATE}", key_file=f"{folder}/{KEY}")
            own |= {"self_signed_for": self_signed, "certificate_folder": folder, "health": health}
        if program.health.port is None:
            raise InputError("the webhook needs a port: give it --port")
        program.run(LiveAdmission, program.settings(AdmissionSettings, **own))


_UI_EPILOG = """
\b
Examples: the cluster of the current context; of another one, in the default browser
  podium ui
  podium ui --context production --open

Exit codes: 0 after SIGINT or SIGTERM.
"""


@click.command(cls=Command, epilog=_UI_EPILOG)
@config_option
@release_options
@option("--open opens", "Show it in the default browser.", is_flag=True)
@program_options()
def ui(*, program: ProgramOptions, opens: bool) -> None:
    """Show a cluster in a browser: what is wrong now, its nodes and pods, and the questions of explain and plan.

    It follows the cluster by watches, with your rights and on this machine alone, and only reads.
    """
    from podium.app.serving.page.live_ui import LiveUI, UISettings

    health = replace(program.health, has_page=True, port=program.health.port or 0)
    program.run(LiveUI, program.settings(UISettings, opens=opens, health=health))
