"""The runs of example scenarios, as short lines."""

from collections.abc import Collection
from pathlib import Path

import podium
from podium.sim.results.result import Result

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLD = ("Scheduled", "Started", "Killing", "Terminated", "Failed", "Deleted", "NodeAdded", "NodeRemoved", "Nominated")


def played(example: str) -> Result:
    """Return a shipped scenario at its end."""
    return podium.simulate(EXAMPLES / f"{example}.yaml", latency=0)


def story(result: Result, reasons: Collection[str] = TOLD, *, owners: Collection[str] = ()) -> list[str]:
    """Return the events of some reasons as `time reason pod node`; pods of the owners are numbered as they appear."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    report = []
    for event in result.events:
        pod = (event.pod or "").removeprefix("default/")
        owner = next((one for one in owners if pod.startswith(f"{one}-")), "")
        if owner and pod not in names:
            counts[owner] = counts.get(owner, 0) + 1
            names[pod] = f"{owner}-{counts[owner]}"
        if event.reason in reasons:
            report.append(
                " ".join(str(one) for one in (event.time, event.reason, names.get(pod, pod), event.node or ""))
            )
    return [line.replace("  ", " ").rstrip() for line in report]
