"""`podium reschedule`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from podium.app.console import options
from podium.app.console.command import Command, option
from podium.app.live.options import ProgramOptions, program_options

if TYPE_CHECKING:
    from podium.api.errors import Validation

_EPILOG = """
\b
Examples: plan for a snapshot; plan continuously for a cluster; evict pods there
  podium reschedule -f snapshot.yaml
  podium reschedule --rescheduler rescheduler.yaml
  podium reschedule --rescheduler rescheduler.yaml --evict

Exit codes: 0 after SIGINT or SIGTERM, 1 after it lost its lease.
"""


def _config_map(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    namespace, _, name = value.partition("/")
    if value and (not namespace or not name or "/" in name):
        raise click.BadParameter(f"{value!r} is not a ConfigMap; write NAMESPACE/NAME")
    return value


@click.command(cls=Command, epilog=_EPILOG)
@option(
    "-f --filename --cluster files",
    "Plan once for the cluster in these files (manifests, a dump, or a snapshot; a directory, or - for standard "
    "input); with --context, for that cluster and the files. May be repeated.",
    metavar="FILE",
    multiple=True,
)
@option(
    "--rescheduler rescheduler_file",
    "A ReschedulerConfiguration, or a DeschedulerPolicy; without it, a cautious one.",
    metavar="FILE",
)
@option(
    "--rescheduler-config-map config_map",
    "A ConfigMap to watch, with the configuration under config.yaml; it can also pause the rescheduler.",
    metavar="NAMESPACE/NAME",
    default="",
    callback=_config_map,
)
@options.config_option
@option("--evict", "Evict pods. Without it, plans are only printed and nothing is written.", is_flag=True)
@option("--once is_once", "Make one plan, and end.", is_flag=True)
@option(
    "--scheduler-honors-avoid-lists/--scheduler-ignores-avoid-lists honors_avoid_lists",
    "Whether the schedulers honor avoid lists. Default: only those of Podium's own API server do.",
    default=None,
)
@option("--pause-file", "Evict no pods while this file exists.", metavar="FILE", default="")
@option(
    "--count-disruptions/--no-count-disruptions counts_disruptions",
    "Count disruptions for rates of budgets, unless a podium scheduler does. Default with --evict.",
    default=True,
)
@options.validate_option
@options.ignore_extenders_option
@options.release_options
@options.output_option_of(("text", "json"), "The output format; on a cluster, json prints one line per plan.")
@program_options("podium-rescheduler", connects_by_config=False)
def reschedule(
    *,
    files: tuple[str, ...],
    rescheduler_file: str | None,
    evict: bool,
    is_once: bool,
    validation: Validation | None,
    ignore_extenders: bool,
    form: Literal["text", "json"],
    program: ProgramOptions,
    **own: Any,
) -> None:
    """Move running pods to better nodes, within disruption budgets.

    Without --evict it only prints plans: which pods would move, from which node to which and why, and which pods stay.
    On a cluster it runs until it is stopped; with files or --once it makes one plan.
    """
    from podium.framework.rescheduling.configuration import default_rescheduler, load_rescheduler

    if files and evict:
        raise click.UsageError("Pods in files cannot be evicted: omit -f or --evict.")
    rescheduling = load_rescheduler(rescheduler_file) if rescheduler_file else default_rescheduler()
    configuration = program.configuration
    if files or (is_once and not evict):
        if own["config_map"]:
            raise click.UsageError(
                "A ConfigMap is read while this runs: for one plan, give its text with --rescheduler."
            )
        from podium.api.collector import collector_paused
        from podium.app.console.output import show_answer
        from podium.app.console.progress import ProgressBar
        from podium.app.console.reading import read_shown
        from podium.app.rescheduling.offline import PlanSettings, plan_once, write_plan

        source = program.cluster
        cluster = source if source.context or source.kubeconfig or not files else None
        read = read_shown(options.Source(files, cluster, source.allows_exec_plugins), validation)
        question = PlanSettings(
            rescheduling, configuration, own["honors_avoid_lists"], ignore_extenders, program.release, True
        )
        with ProgressBar("planning"), collector_paused(keeps_objects=True):
            report = plan_once(read, question)
        show_answer(report, form, lambda page: write_plan(page, report))
        return
    from podium.app.rescheduling.live_rescheduler import LiveRescheduler, ReschedulingSettings, check_settings
    from podium.framework.extenders import without_extenders

    without_extenders(configuration, ignore=ignore_extenders)
    settings = program.settings(
        ReschedulingSettings, dry_run=not evict, rescheduling=rescheduling, plan_form=form, is_once=is_once, **own
    )
    program.run(LiveRescheduler, settings, check_settings)
