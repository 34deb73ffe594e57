"""Runs of simulations without the conveniences of `podium.simulate`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import msgspec

from podium.api.input.codec import Document, Input, Reader
from podium.api.versions.choice import read_choice
from podium.framework.settings.configuration import Configuration
from podium.sim.results.result import Result
from podium.sim.run import Progress, play
from podium.sim.run_options import SeededRunArguments, run_options


def simulate(
    objects: Input | Sequence[Document] | Sequence[dict[str, Any]],
    *,
    configuration: Configuration | None = None,
    kubernetes_version: str = "",
    feature_gates: str = "",
    ignore_extenders: bool = False,
    progress: Progress | None = None,
    **arguments: Unpack[SeededRunArguments],
) -> Result:
    """Simulate a cluster in virtual time. The further arguments are those of `SeededRunArguments`.

    `objects` are an input or documents of `podium.api.input.codec`, or Kubernetes objects as dictionaries, with at most
    one Scenario. Equal arguments give equal results. Raises InputError for invalid arguments, and LimitError beyond
    `limits`.
    """
    options = replace(
        run_options(**arguments),
        configuration=configuration,
        release=read_choice(kubernetes_version, feature_gates),
        ignore_extenders=ignore_extenders,
    )
    return play(objects if isinstance(objects, Input) else _input(objects), options, progress)


def _input(objects: Sequence[Document] | Sequence[dict[str, Any]]) -> Input:
    plain = [item for item in objects if not isinstance(item, Document)]
    with Reader() as reader:
        for document in objects:
            if isinstance(document, Document):
                reader.add(document)
        if plain:
            # Read like a file, to find the same mistakes.
            text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": plain})
            reader.read_text(text, "objects")
        return reader.input()
