"""`podium explain`."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command
from podium.app.console.options import (
    HTML,
    config_option,
    feature_gates_option,
    ignore_extenders_option,
    picture_output_option,
    validate_option,
)
from podium.app.console.source import Source, optional_source_options, override_option

if TYPE_CHECKING:
    from podium.api.warnings import Validation
    from podium.framework.settings.feature_gates import FeatureGates

_EPILOG = """
\b
Example: what happens if the pod shop/web of web.yaml is created in the cluster of nodes-and-pods.yaml
  podium explain shop/web -f nodes-and-pods.yaml -f web.yaml
Example: why does no pod of the Deployment go to node-3
  podium explain deploy/web -n shop --node node-3 -f cluster.json
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("target")
@optional_source_options
@override_option
@click.option(
    "--decision",
    metavar="FILE",
    help="Show the last decision about a pod that podium scheduler --decisions has written there, as it was made.",
)
@validate_option
@click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    help="The namespace of a TARGET given without one.",
)
@click.option("--node", metavar="NODE", help="Why there, or why not: what every plugin says of this node.")
@click.option("--all-nodes", is_flag=True, help="List every node with its verdict, however many there are.")
@click.option("--outcomes", is_flag=True, help="List all ways in which chance may have it come out, by who suffers.")
@click.option("--scheduler", metavar="NAME", default="", help="The profile that decides, in place of the pod's own.")
@config_option
@ignore_extenders_option
@feature_gates_option
@picture_output_option
def explain(
    *,
    target: str,
    source: Source,
    decision: str | None,
    validation: Validation | None,
    namespace: str,
    node: str | None,
    all_nodes: bool,
    outcomes: bool,
    scheduler: str,
    config: str | None,
    ignore_extenders: bool,
    feature_gates: FeatureGates,
    form: str,
) -> None:
    """Say what would happen to TARGET now, and why.

    TARGET is a pod among the objects in the files, a name or namespace/name, or a workload such as deploy/web: then the
    first of its pods that is pending is meant, or else one more that it would make. The answer has each node's verdict,
    the scores of those that fit, whom the pod would preempt and why there, and what would have to change. Of a pod that
    has a node it says why it is there, where it would go if it were evicted, and who could take its place.
    """
    # This process makes many objects, hardly any cycles, and then ends.
    gc.disable()
    from podium.app.cluster import Cluster
    from podium.app.console.output import new_page, show, show_page
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import read_shown
    from podium.app.decision_settings import DecisionSettings
    from podium.app.explaining.answer_text import write_answer
    from podium.app.explaining.on_node import answer_on
    from podium.app.explaining.workload import WorkloadExplanation
    from podium.framework.settings.configuration import load_configuration

    if decision is not None:
        _show_decision(decision, target if "/" in target else f"{namespace}/{target}", form)
        return
    source = source.needed("a cluster with --context, or --decision")
    configuration = load_configuration(config) if config else None
    settings = DecisionSettings(configuration, feature_gates, ignore_extenders)
    cluster = Cluster(read_shown(source, validation), settings)
    with ProgressBar("deciding"):
        answer = cluster.ask(target, namespace, scheduler)
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    on_node = None if node is None else answer_on(explanation, node)
    if form == HTML:
        from podium.app.reporting.showing import show_report

        show_report(answer if on_node is None else on_node)
        return
    if form != "text":
        show((answer if on_node is None else on_node).to_dict(), form)
        return
    page = new_page()
    with ProgressBar("finding what would have to change"):
        write_answer(page, answer, on_node, all_nodes=all_nodes, outcomes=outcomes)
    show_page(page)


def _show_decision(path: str, pod: str, form: str) -> None:
    from podium.app.console.output import new_page, show, show_page
    from podium.app.live.decision import find_decision
    from podium.app.live.decision_text import write_decision

    decision, line = find_decision(path, pod)
    if form == HTML:
        from podium.app.reporting.showing import show_report

        show_report(decision)
        return
    if form != "text":
        show(line, form)
        return
    page = new_page()
    write_decision(page, decision)
    show_page(page)
