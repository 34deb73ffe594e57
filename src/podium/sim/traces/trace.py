"""A recorded workload as a cluster and a scenario that Podium can play."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from podium.api.meta import Raw
from podium.sim.scenario.scenario import API_VERSION


@dataclass(frozen=True, slots=True)
class Trace:
    """The objects that are there from the start, and the pods that come, each with its time in seconds after it."""

    name: str
    objects: list[Raw]
    arrivals: list[tuple[int, Raw]]

    def documents(self) -> Iterator[Raw]:
        """The objects, then the scenario in which the pods come, those of one time in one step."""
        yield from self.objects
        steps: list[Raw] = []
        last = None
        for time, pod in sorted(self.arrivals, key=lambda arrival: arrival[0]):
            if time != last:
                steps.append({"at": f"{time}s", "apply": []})
                last = time
            steps[-1]["apply"].append(pod)
        yield {"apiVersion": API_VERSION, "kind": "Scenario", "metadata": {"name": self.name}, "spec": {"steps": steps}}

    def write(self, stream: BinaryIO) -> None:
        """Write the documents as compact JSON, one a line."""
        for document in self.documents():
            stream.write(msgspec.json.encode(document) + b"\n")
