"""What a simulation can play."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.errors import InputError
from podium.api.input.codec import Document, refuse_empty_pods
from podium.plane.initial import located
from podium.sim.annotations import FAILING, check_end
from podium.sim.scenario.changes import Apply, TroubleNode
from podium.sim.scenario.scenario import Scenario
from podium.sim.scenario.steps import check_played


def check_objects(documents: Iterable[Document], scenario: Scenario, has_end: bool) -> None:
    """Raise InputError for what no simulation can play: empty pods, annotations that cannot be read, endless ones."""
    documents = list(documents)
    refuse_empty_pods(documents)
    for document in documents:
        if document.object is not None:
            try:
                check_played(document.raw, document.object)
                if not has_end:
                    check_end(document.object)
            except InputError as error:
                raise located(error, document) from None
    for step in scenario.steps:
        if isinstance(step.change, TroubleNode) and step.change.trouble and not has_end:
            raise step.error(f"{FAILING} for ever; say when to stop with `until`")
        if isinstance(step.change, Apply) and not has_end:
            try:
                check_end(step.change.object)
            except InputError as error:
                raise step.error(f"{error.path}: {error.problem}") from None
