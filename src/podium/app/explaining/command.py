"""`podium explain`."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import click

from podium.app.console import options
from podium.app.console.command import Command, option
from podium.app.using import completion

if TYPE_CHECKING:
    from podium.api.errors import Validation
    from podium.app.console.page import Page
    from podium.app.inputs import DecisionSettings

_EPILOG = """
\b
Examples: what happens to the pod shop/web of web.yaml; why no pod of a Deployment goes to node-3
  podium explain shop/web -f cluster.json -f web.yaml
  podium explain deploy/web -n shop --node node-3 -f cluster.json
"""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("target", shell_complete=completion.targets)
@options.source_options
@option(
    "--decision",
    "Show the last decision about a pod that podium scheduler --decisions has written to this file.",
    metavar="FILE",
)
@options.validate_option
@options.namespace_option
@option(
    "--node",
    "Explain one node: the verdict of every plugin, and the scores.",
    metavar="NODE",
    shell_complete=completion.nodes,
)
@option("--all-nodes", "List every node with its verdict, however many there are.", is_flag=True)
@option("--outcomes", "List all equal outcomes, by preempted workloads.", is_flag=True)
@option("--scheduler", "The profile that decides, in place of the pod's own.", metavar="NAME", default="")
@options.settings_options
@options.picture_output_option
def explain(
    *,
    target: str,
    source: options.Source,
    decision: str | None,
    validation: Validation | None,
    namespace: str,
    node: str | None,
    all_nodes: bool,
    outcomes: bool,
    scheduler: str,
    settings: DecisionSettings,
    form: str,
) -> None:
    """Explain what would happen to TARGET now, and why.

    TARGET is a pod of the input, a name or namespace/name, or a workload such as deploy/web: then it is the first of
    its pending pods, or else one more that it would create. The answer has each node's verdict, the scores of those
    that fit, which pods would be preempted and why there, and what would have to change. For a pod that has a node it
    explains why it is there, where it would go if it were evicted, and which pods could preempt it.
    """
    # This process makes many objects, hardly any cycles, and exits soon.
    gc.disable()
    from podium.app.console.output import show_answer
    from podium.app.console.progress import ProgressBar
    from podium.app.console.reading import cluster_of, read_shown
    from podium.app.explaining.on_node import answer_on
    from podium.app.explaining.text import write_explanation
    from podium.app.explaining.workload import WorkloadExplanation

    if decision is not None:
        _show_decision(decision, target if "/" in target else f"{namespace}/{target}", form)
        return
    source = source.needed("a cluster with --context, or --decision, or podium use FILE first")
    cluster = cluster_of(read_shown(source, validation), settings)
    with ProgressBar("deciding"):
        answer = cluster.ask(target, namespace, scheduler)
    explanation = answer.explanation if isinstance(answer, WorkloadExplanation) else answer
    on_node = None if node is None else answer_on(explanation, node)

    def write(page: Page) -> None:
        with ProgressBar("finding what would have to change"):
            if isinstance(answer, WorkloadExplanation):
                answer.write_pods(page)
            if on_node is not None:
                on_node.write(page)
            else:
                write_explanation(page, explanation, all_nodes=all_nodes, outcomes=outcomes)

    show_answer(answer if on_node is None else on_node, form, write)


def _show_decision(path: str, pod: str, form: str) -> None:
    from podium.app.console.output import show, show_answer
    from podium.app.live.decisions import find_decision, write_decision

    decision, line = find_decision(path, pod)
    if form in ("text", options.HTML):
        show_answer(decision, form, lambda page: write_decision(page, decision))
    else:
        show(line, form)
