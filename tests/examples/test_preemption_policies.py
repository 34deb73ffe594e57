"""The two user stories of the design for preemption policies, by the second."""

from pathlib import Path

import podium
from podium.sim.results.result import Result

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLD = ("Scheduled", "Finished", "Killing")


def story(result: Result) -> list[str]:
    """Return what happens, as `time reason job`, pods of a Job by its name."""
    return [f"{event.time} {event.reason} {name(event.pod or '')}" for event in result.events if event.reason in TOLD]


def name(pod: str) -> str:
    own = pod.removeprefix("default/")
    return own if own.startswith("web") else own.rpartition("-")[0]


def without_policy(example: str, policy: str, tmp_path: Path) -> Result:
    """Return the example as it goes when the class has no preemption policy."""
    text = (EXAMPLES / example).read_text()
    assert text.count(f"preemptionPolicy: {policy}\n") == 1
    file = tmp_path / example
    file.write_text(text.replace(f"preemptionPolicy: {policy}\n", ""))
    return podium.simulate(file, latency=0)


def test_a_never_preempting_pod_goes_first_in_the_queue_and_disrupts_no_pod() -> None:
    result = podium.simulate(EXAMPLES / "batch-waits.yaml", latency=0)

    assert story(result) == [
        "0 Scheduled nightly",
        "0 Scheduled nightly",
        "60 Finished nightly",
        "60 Finished nightly",
        "60 Scheduled report",
        "60 Scheduled nightly",
        "90 Finished report",
        "90 Scheduled nightly",
        "120 Finished nightly",
        "150 Finished nightly",
    ]
    [waits] = [e.message for e in result.events if e.reason == "FailedScheduling" and "report" in (e.pod or "")]
    assert waits.endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_with_the_default_policy_it_would_interrupt_one(tmp_path: Path) -> None:
    assert "20 Killing nightly" in story(without_policy("batch-waits.yaml", "Never", tmp_path))


def test_a_pod_that_is_non_preemptible_waits_for_all_others_and_then_runs_to_its_end() -> None:
    result = podium.simulate(EXAMPLES / "batch-stays.yaml", latency=0)

    assert story(result) == [
        "0 Scheduled web-1",
        "0 Scheduled training",
        "60 Finished training",
        "60 Scheduled web-2",
        "90 Finished web-1",
        "90 Scheduled training",
        "150 Finished web-2",
        "150 Finished training",
    ]


def test_with_the_default_policy_it_would_be_interrupted(tmp_path: Path) -> None:
    assert "20 Killing training" in story(without_policy("batch-stays.yaml", "NonPreemptible", tmp_path))
