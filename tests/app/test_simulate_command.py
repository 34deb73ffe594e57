import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import podium
from podium.app.console.command import podium as command
from tests.app.processes import run

EXAMPLES = Path(__file__).parents[2] / "examples"
CUT_OFF = ["--expendable-pods-priority-cutoff", "2000000"]
STORY = """\
2m from 2026-01-01T00:00:00Z: 1 bound, 2 preempted, 1 pod waiting at the end

Timeline  time from the start
   +0s  FailedScheduling  default/c          1 Insufficient cpu
   +0s  Nominated         default/c  node-1
   +0s  Preempted         default/a  node-1  by default/c
   +0s  Killing           default/a  node-1  by default/c: grace period 60s
   +0s  Preempted         default/b  node-1  by default/c
   +0s  Killing           default/b  node-1  by default/c: grace period 30s
   +0s  FailedScheduling  default/d          1 Insufficient cpu (3 times, last at +1m)
  +30s  Terminated        default/b  node-1
  +30s  FailedScheduling  default/c          1 Insufficient cpu, not eligible due to a terminating
                                             pod on the nominated node
   +1m  Terminated        default/a  node-1
   +1m  Scheduled         default/c  node-1
   +1m  Started           default/c  node-1

At the end  1 node
  node    cpu               pod        priority  requests
  node-1  ██████████  100%  default/c      1000  10 cpu (100%)

Still waiting  1 pod
  default/d  priority 50  since +0s  1 Insufficient cpu. preemption: 1 No preemption victims found
                                     for incoming pod

Summary  4 pods: 1 ready, 1 pending, 2 terminated
  6 attempts, 1 binding, 2 preempted

Waits  for a node, of the pods that got one
                 pods  mean  median  95%  longest
  priority 1000     1    1m      1m   1m       1m

Requested  of what the nodes offer
          on average  at the end
  cpu          87.5%      100.0%
  memory        0.0%        0.0%
  latencies: 5ms for a scheduler's request, 10ms for a controller's or kubelet's, 25ms between steps
    of one time; --latency sets them
"""


def simulate(*args: str, stdin: str | None = None) -> str:
    result = CliRunner().invoke(command, ["simulate", *args], input=stdin, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_without_its_feature_gate_no_preemption_policy_counts() -> None:
    """The job of the example is NonPreemptible."""
    off = "NonPreemptingPriority=false"
    file = str(EXAMPLES / "batch-stays.yaml")

    assert "Killing" not in simulate("-f", file)
    assert "Killing" in simulate("-f", file, "--feature-gates", off)
    assert podium.simulate(file).summary["preempted"] == 0
    assert podium.simulate(file, feature_gates=off).summary["preempted"] == 1


def cluster(nodes: int, pods: int, **pod: object) -> str:
    """Return a cluster of nodes with one cpu each, and pods that ask for one."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number:03}"},
            "status": {"allocatable": {"cpu": "1", "pods": 9}},
        }
        for number in range(nodes)
    ]
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    items += [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number:03}"},
            "spec": {"containers": [container], **pod},
        }
        for number in range(pods)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def test_the_text_shows_the_timeline() -> None:
    head, timeline, *rest = simulate("-f", str(EXAMPLES / "starvation-1.yaml")).split("\n\n")

    # In which order things happen at one instant is the simulation's affair.
    expected_head, expected_timeline, *expected_rest = STORY.split("\n\n")
    assert (head, rest) == (expected_head, expected_rest)
    assert sorted(timeline.splitlines()) == sorted(expected_timeline.splitlines())


def test_json_and_yaml_are_the_result_of_the_function() -> None:
    file = EXAMPLES / "budget.yaml"
    expected = podium.simulate(file, seed=3).to_dict()

    assert json.loads(simulate("-f", str(file), "--seed", "3", "-o", "json")) == expected
    assert yaml.load(simulate("-f", str(file), "--seed", "3", "-o", "yaml"), yaml.CSafeLoader) == expected


def test_every_option_is_the_function_s() -> None:
    file = EXAMPLES / "one-victim.yaml"
    times = ("--until", "50s", "--start", "2026-03-01T00:00:00Z", "--start-delay", "5s", "--bind-delay", "250ms")

    found = json.loads(simulate("-f", str(file), *times, "-o", "json"))

    assert (
        found
        == podium.simulate(
            file, until="50s", start="2026-03-01T00:00:00Z", start_delay="5s", bind_delay="250ms"
        ).to_dict()
    )
    assert found["summary"]["end"] == 50
    assert simulate("-f", str(file), *times).startswith("50s from 2026-03-01T00:00:00Z: ")


def test_one_seed_gives_the_same_text_under_every_hash_seed() -> None:
    args = ("-f", str(EXAMPLES / "starvation-2.yaml"), "--seed", "7")

    there = run("simulate", *args, PYTHONHASHSEED="1")

    assert (there.returncode, there.stdout) == (0, simulate(*args))


def test_a_long_run_summarizes_events_unless_they_are_requested() -> None:
    manifests = cluster(25, 40)

    digest, full = simulate("-f", "-", stdin=manifests), simulate("-f", "-", "--events", stdin=manifests)

    assert "Timeline" not in digest
    assert "Events  65; --events lists them all\n  25  Scheduled\n  25  Started\n  15  FailedScheduling\n" in digest
    assert full.count("  Scheduled  ") == 25


def test_simulate_summarizes_utilization_of_many_nodes() -> None:
    text = simulate("-f", "-", stdin=cluster(25, 5))

    assert "At the end  25 nodes, by how much of their cpu is requested\n    none  20  ████████░░\n" in text
    assert "\n     all   5  ██░░░░░░░░\n" in text


def test_many_waiting_pods_are_grouped_by_what_they_wait_for() -> None:
    text = simulate("-f", "-", stdin=cluster(1, 30))

    assert "Still waiting  29 pods\n  29 pods  default/p001, default/p002, default/p003 and 26 more  prio" in text


def test_a_gated_pod_waits_without_an_attempt() -> None:
    text = simulate("-f", "-", stdin=cluster(1, 1, schedulingGates=[{"name": "example.com/quota"}]))

    why = "waiting for scheduling gates: [example.com/quota]"
    assert f"Still waiting  1 pod\n  default/p000  priority 0  since +0s  {why}\n" in text


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--until", "soon"], "Invalid value for '--until': \"soon\" is not a duration"),
        (["--until", "-5s"], "Invalid value for '--until': \"-5s\" is negative; write 0s or more"),
        (["--start", "today"], "Invalid value for '--start': \"today\" is not a time"),
        (["--seed", "x"], "Invalid value for '--seed'"),
    ],
)
def test_an_option_that_cannot_be_read_is_wrong_usage(args: list[str], error: str) -> None:
    result = CliRunner().invoke(command, ["simulate", "-f", str(EXAMPLES / "budget.yaml"), *args])

    assert result.exit_code == 1
    assert error in result.stderr


def test_a_step_that_cannot_be_played_fails_with_its_place() -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {"steps": [{"at": "1s", "delete": {"kind": "Pod", "name": "gone"}}]},
    }

    result = CliRunner().invoke(command, ["simulate", "-f", "-"], input=json.dumps(scenario))

    assert result.exit_code == 1
    assert result.stderr.startswith("podium: error: standard input, document 1, Scenario s, .spec.steps[0].delete: ")
    assert result.stdout == ""


def test_the_autoscalers_cut_off_can_be_given_on_the_command_line() -> None:
    """The scenario's own is 0: without the option a node is added for the pod of priority 0."""
    file = str(EXAMPLES / "autoscaler-2.yaml")
    report = [json.loads(simulate("-f", file, "-o", "json", *option))["events"] for option in ([], CUT_OFF)]

    assert ["TriggeredScaleUp" in {event["reason"] for event in events} for events in report] == [True, False]


def test_a_cut_off_needs_an_autoscaler() -> None:
    result = CliRunner().invoke(command, ["simulate", "-f", str(EXAMPLES / "drain.yaml"), *CUT_OFF])

    assert result.exit_code == 1
    assert "a priority cut-off is given, and the scenario has no autoscaler" in result.output
