"""`podium scheduler`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.app.console.command import Command
from podium.app.console.options import config_option, release_options
from podium.app.live.options import ProgramOptions, program_options

if TYPE_CHECKING:
    from podium.api.versions.choice import ReleaseChoice

_EPILOG = """
\b
Examples: a dry run on the cluster of the current context; then schedule its pods
  podium scheduler --dry-run
  podium scheduler --config scheduler.yaml --decisions decisions.jsonl

Exit codes: 0 after SIGINT or SIGTERM, 1 after it lost its lease.
"""


@click.command(cls=Command, epilog=_EPILOG)
@config_option
@release_options
@click.option("--dry-run", is_flag=True, help="Log decisions and write nothing; needs only get, list and watch.")
@click.option(
    "--pause-preemption-file", "pause_file", metavar="FILE", default="", help="Preempt no pods while this file exists."
)
@click.option(
    "--trim-avoid-lists", "trims_avoid_lists", is_flag=True, help="When leading, remove expired entries of avoid lists."
)
@click.option("--decisions", metavar="FILE", default="", help="Append each decision to this file, as a line of JSON.")
@click.option(
    "--allow-insecure-preemption",
    "allows_insecure_preemption",
    is_flag=True,
    help="Preempt even if the API server's certificate is not checked.",
)
@program_options("kube-scheduler")
def scheduler(*, config: str | None, release: ReleaseChoice, program: ProgramOptions, **own: Any) -> None:
    """Schedule the pods of a cluster, as kube-scheduler does.

    It connects to the API server of a kubeconfig or, within a pod, of the pod's own cluster. It binds pods, preempts,
    and reports in events and conditions why pods are pending. Several replicas elect a leader.
    """
    from podium.app.live.live_program import LiveSettings, run_program
    from podium.app.live.live_scheduler import LiveScheduler, check_settings
    from podium.client.kubeconfig import find_access
    from podium.framework.settings.configuration import default_configuration, load_configuration

    configuration = load_configuration(config) if config else default_configuration()
    of_program = program.of_program(configuration, "kube-scheduler", elects=not own["dry_run"])
    settings = LiveSettings(configuration=configuration, release=release, **own, **of_program)
    kubeconfig = program.cluster.kubeconfig or configuration.client_connection.kubeconfig
    access = find_access(os.environ, kubeconfig, program.cluster.context)
    check_settings(access, settings)
    sys.exit(run_program(settings, lambda log: LiveScheduler(access, settings, log)))
