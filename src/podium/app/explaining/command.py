"""`podium explain`."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command
from podium.app.console.options import (
    config_option,
    feature_gates_option,
    ignore_extenders_option,
    output_option,
    validate_option,
)
from podium.app.console.source import Source, optional_source_options

if TYPE_CHECKING:
    from podium.api.warnings import Validation
    from podium.framework.settings.feature_gates import FeatureGates

_EPILOG = """
\b
Example: what happens if the pod shop/web of web.yaml is created in the cluster of nodes-and-pods.yaml
  podium explain shop/web -f nodes-and-pods.yaml -f web.yaml
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("pod")
@optional_source_options
@click.option(
    "--decision",
    metavar="FILE",
    help="Show the last decision about POD that podium scheduler --decisions has written there, as it was made.",
)
@validate_option
@click.option(
    "-n", "--namespace", default="default", show_default=True, help="The namespace of a POD that is given without one."
)
@click.option("--scheduler", metavar="NAME", default="", help="The profile that decides, in place of the pod's own.")
@config_option
@ignore_extenders_option
@feature_gates_option
@output_option
def explain(
    *,
    pod: str,
    source: Source,
    decision: str | None,
    validation: Validation | None,
    namespace: str,
    scheduler: str,
    config: str | None,
    ignore_extenders: bool,
    feature_gates: FeatureGates,
    form: str,
) -> None:
    """Say what would happen to POD now, and why.

    POD, a name or namespace/name, is a pending pod among the objects in the files. The answer has each node's verdict,
    the scores of those that fit, whom the pod would preempt and why there, and what would have to change.
    """
    from podium.app.console.output import new_page, show, show_page
    from podium.app.console.reading import read_shown
    from podium.app.explaining.text import write_explanation
    from podium.app.loaded import LoadedCluster
    from podium.framework.settings.configuration import load_configuration

    # This process makes many objects, hardly any cycles, and then ends.
    gc.disable()
    wanted = pod if "/" in pod else f"{namespace}/{pod}"
    if decision is not None:
        _show_decision(decision, wanted, form)
        return
    source = source.needed("a cluster with --context, or --decision")
    configuration = load_configuration(config) if config else None
    loaded = LoadedCluster(
        read_shown(source, validation), configuration, feature_gates, ignore_extenders=ignore_extenders
    )
    explanation = loaded.explain(wanted, scheduler)
    if form != "text":
        show(explanation.to_dict(), form)
        return
    page = new_page()
    write_explanation(page, explanation)
    show_page(page)


def _show_decision(path: str, pod: str, form: str) -> None:
    from podium.app.console.output import new_page, show, show_page
    from podium.app.live.decision import find_decision
    from podium.app.live.decision_text import write_decision

    decision, line = find_decision(path, pod)
    if form != "text":
        show(line, form)
        return
    page = new_page()
    write_decision(page, decision)
    show_page(page)
