"""A recorded workload as a cluster and a scenario that Podium can play."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from podium.api.meta import Raw
from podium.sim.scenario.scenario import API_VERSION


@dataclass(frozen=True, slots=True)
class Trace:
    """The objects that are there from the start, and those that come, each with its time in seconds after it.

    ``stays`` says, by their names, how many seconds after they came workloads are deleted.
    """

    name: str
    objects: list[Raw]
    arrivals: list[tuple[int, Raw]]
    stays: Mapping[str, int] = field(default_factory=dict)

    def documents(self) -> Iterator[Raw]:
        """The objects, then the scenario in which the others come and go, those of one time in one step."""
        yield from self.objects
        steps: list[Raw] = []
        last = None
        for time, arriving in sorted(self.arrivals, key=lambda arrival: arrival[0]):
            if time != last:
                steps.append({"at": f"{time}s", "apply": []})
                last = time
            steps[-1]["apply"].append(arriving)
        for time, leaving in self.arrivals:
            name = leaving["metadata"]["name"]
            if name in self.stays:
                gone = {"kind": leaving["kind"], "namespace": "default", "name": name}
                steps.append({"at": f"{time + self.stays[name]}s", "delete": gone})
        yield {"apiVersion": API_VERSION, "kind": "Scenario", "metadata": {"name": self.name}, "spec": {"steps": steps}}

    def write(self, stream: BinaryIO) -> None:
        """Write the documents as compact JSON, one a line."""
        for document in self.documents():
            stream.write(msgspec.json.encode(document) + b"\n")
