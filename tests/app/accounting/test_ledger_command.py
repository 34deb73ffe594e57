"""`podium ledger`: its input, its answers and its errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from podium.app.accounting.account import MOST_LINKS, Account, Grouping, LedgerQuery, chain_pods, chains_of
from podium.app.accounting.command import ledger
from podium.app.console.command import podium as command
from podium.controllers.ledger.disruption import Beneficiary, Cause, Disruption, Loss, ReplacementPod
from podium.controlplane.ledger_file import LedgerFile

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXT = """\
3 disruptions: 3 drain; 6m20s of running time lost

Most disrupted
                          disruptions  in vain   lost          cpu lost             ready again  by
  Deployment default/web            2           4m20s  260 core-seconds  2 of 2, in 20s at most  drain
  Pod default/lonely                1              2m  120 core-seconds                  0 of 1  drain

Disruptions
  at     pod                           node    why    outcome
  2m     default/lonely                node-1  drain  has no controller that replaces it
  2m     default/web-9827bc465e-87dtj  node-1  drain  on node-2 after 20s
  2m20s  default/web-9827bc465e-vzw92  node-1  drain  on node-2 after 20s
"""


def ask(*arguments: str, given: str | bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["ledger", *arguments], input=given)


@pytest.fixture(scope="module")
def drained() -> str:
    """Provide what the simulation of a drain printed."""
    found = CliRunner().invoke(
        command, ["simulate", "-f", str(EXAMPLES / "drain.yaml"), "--latency", "0", "-o", "json"]
    )
    assert found.exit_code == 0
    return found.output


@pytest.mark.parametrize(("option", "values"), [("causes", get_args(Cause)), ("grouping", get_args(Grouping))])
def test_every_accepted_ledger_option_is_offered(option: str, values: tuple[str, ...]) -> None:
    (found,) = (each for each in ledger.params if each.name == option)

    assert isinstance(found.type, click.Choice)
    assert tuple(found.type.choices) == values


def record(
    number: int, *, beneficiary: str = "", came: str = "", cause: Cause = "preemption", **rest: Any
) -> Disruption:
    """Return a disruption of the pod `default/p<number>` at that second."""
    return Disruption(
        id=number,
        time=rest.pop("time", number),
        pod=rest.pop("pod", f"default/p{number}"),
        uid=f"p{number}",
        node="n",
        cause=cause,
        beneficiary=Beneficiary(pod=f"default/{beneficiary}", uid=beneficiary, room="n") if beneficiary else None,
        replacement=ReplacementPod(pod=f"default/{came}", uid=came) if came else None,
        **rest,
    )


def test_the_first_screen_shows_disrupted_pods_and_their_outcome(drained: str) -> None:
    assert ask("-f", "-", given=drained).output == TEXT


def test_every_output_format_reports_the_same_disruptions(drained: str) -> None:
    expected = json.loads(drained)["ledger"]

    answer = json.loads(ask("-f", "-", "-o", "json", given=drained).output)
    assert answer["records"] == expected
    assert yaml.safe_load(ask("-f", "-", "-o", "yaml", given=drained).output) == answer
    rows = list(csv.DictReader(io.StringIO(ask("-f", "-", "-o", "csv", given=drained).output)))
    assert [(row["pod"], row["replacementNode"]) for row in rows] == [
        (entry["pod"], (entry["replacement"] or {"node": ""})["node"]) for entry in expected
    ]


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (LedgerQuery(owners=("shop/web",)), [2]),
        (LedgerQuery(owners=("Deployment shop/web",)), [2]),
        (LedgerQuery(owners=("default/p1",)), [1]),
        (LedgerQuery(namespaces=("shop",)), [2]),
        (LedgerQuery(causes=("drain",)), [3]),
        (LedgerQuery(lowest_priority=5), [3]),
        (LedgerQuery(highest_priority=4), [1, 2]),
        (LedgerQuery(since="98s"), [2, 3]),
        (LedgerQuery(until="98s"), [1, 2]),
        (LedgerQuery(only_in_vain=True), [3]),
    ],
)
def test_each_limit_leaves_out_what_it_says(asked: LedgerQuery, numbers: list[int]) -> None:
    records = (
        record(1),
        record(2, pod="shop/web-1", owner="Deployment shop/web"),
        record(3, cause="drain", priority=5, owner="ReplicaSet default/x"),
    )
    back = ReplacementPod(pod="default/x-2", uid="x-2", node="n")
    account = Account("", (*records[:2], Disruption(**{**_fields(records[2]), "replacement": back})), 100)

    assert [one.id for one in asked.of(account)] == numbers


def test_chains_lead_from_the_most_important_pod_to_the_last_victim() -> None:
    records = [
        record(1, beneficiary="high", came="p1-again"),
        record(2, beneficiary="p1-again"),
        record(3, beneficiary="p2"),
        record(4, beneficiary="alone"),
    ]

    assert [chain_pods(chain) for chain in chains_of(records)] == [
        ["default/high", "default/p1", "default/p2", "default/p3"]
    ]


def test_pods_that_take_turns_make_a_chain_that_ends() -> None:
    records = [
        record(number, beneficiary=f"p{number - 1}", came=f"p{number + 1}") for number in range(1, 2 * MOST_LINKS)
    ]
    turns = [record(1, beneficiary="b", came="a"), record(2, beneficiary="a", came="b")]

    assert max(len(chain) for chain in chains_of(records)) == MOST_LINKS
    assert [len(chain) for chain in chains_of(turns)] == [2]


def test_text_that_a_spreadsheet_would_run_is_quoted(tmp_path: Path) -> None:
    file = LedgerFile(str(tmp_path / "ledger"))
    file.put(record(1, rule="=cmd()", loss=Loss(requests={"cpu": 1})))
    file.close()

    (row,) = csv.DictReader(io.StringIO(ask("--data-dir", str(tmp_path), "-o", "csv").output))
    assert (row["rule"], row["time"]) == ("'=cmd()", "1970-01-01T00:00:01Z")


def test_a_plan_is_read_as_the_run_that_it_holds(drained: str) -> None:
    answer = {"question": "drain", "result": json.loads(drained)}

    assert ask("-f", "-", given=json.dumps(answer)).output == TEXT


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "is neither JSON nor a ledger"),
        ("[" * 100_000, "is neither JSON nor a ledger"),
        (b'{"events": "\xff"}', "is neither JSON nor a ledger"),
        ("[1]", "is not a result"),
        ('{"items": [{"apiVersion": "podium.dev/v1alpha1", "kind": "Recording"}]}', "is a recording; replay it"),
        ('{"ledger": []}', "is not a result"),
        ('{"events": [], "summary": {"end": 1}, "ledger": 5}', "ledger: is not a list of disruptions"),
        ('{"events": [], "summary": {"end": "x"}}', "summary.end: is not a number of seconds"),
        ('{"events": [], "summary": {"end": 1}, "ledger": [{}]}', "ledger[0]: is not a record of a disruption"),
    ],
)
def test_an_invalid_result_is_rejected_with_its_place(given: str | bytes, problem: str) -> None:
    found = ask("-f", "-", given=given)

    assert found.exit_code == 1
    assert problem in found.output
    assert found.output.startswith("podium: error: standard input")


def test_a_run_without_disruptions_is_reported() -> None:
    assert ask("-f", "-", given='{"events": [], "summary": {"end": 1}}').output == "no disruptions\n"


@pytest.mark.parametrize("arguments", [(), ("-f", "a", "--data-dir", "b")])
def test_ledger_requires_exactly_one_input(arguments: tuple[str, ...]) -> None:
    found = ask(*arguments)

    assert (found.exit_code, "Name one thing to read" in found.output) == (1, True)


def test_times_that_cannot_be_read_are_refused(drained: str) -> None:
    found = ask("-f", "-", "--since", "yesterday", given=drained)

    assert found.exit_code == 1
    assert "--since: 'yesterday' is not a duration" in found.output


def test_a_page_shows_the_same_and_runs_nothing_of_it() -> None:
    made = {"events": [], "summary": {"end": 9}, "ledger": [record(1, rule="</script><script>x()").to_dict()]}
    found = ask("-f", "-", "-o", "html", given=json.dumps(made))

    assert found.exit_code == 0
    assert "1 disruption: 1 preemption" in found.output
    assert "</script><script>x()" not in found.output


def test_names_from_outside_do_nothing_to_a_terminal() -> None:
    made = {"events": [], "summary": {"end": 9}, "ledger": [record(1, pod="default/\x1b[2J").to_dict()]}

    assert "\x1b" not in ask("-f", "-", given=json.dumps(made)).output


def _fields(found: Disruption) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


@pytest.fixture(scope="module")
def charged() -> str:
    """Provide what a simulation with quotas by priority printed."""
    arguments = ["simulate", "-f", str(EXAMPLES / "quota-by-priority.yaml"), "--latency", "0", "-o", "json"]
    found = CliRunner().invoke(command, arguments)
    assert found.exit_code == 0
    return found.output


def test_usage_is_what_each_namespace_requested_by_priority(charged: str) -> None:
    answer = json.loads(ask("-f", "-", "--usage", "-o", "json", given=charged).output)

    # Four pods of 1 cpu from 1m5s to 5m in shop, from 2m5s in search, and in crawler eight before that.
    assert {total["namespace"]: total["requested"]["cpu"] for total in answer["totals"]} == {
        "crawler": pytest.approx((8 * 65 + 4 * 60) / 3_600),
        "search": pytest.approx(4 * 175 / 3_600),
        "shop": pytest.approx(4 * 235 / 3_600),
    }
    assert [hour["priorityClass"] for hour in answer["hours"]] == ["preemptible", "critical", "critical"]


def test_usage_can_be_limited_and_is_a_table(charged: str) -> None:
    shown = ask("-f", "-", "--usage", "-n", "shop", given=charged).output
    assert shown.splitlines()[0] == "requested by the pods of 1 namespace within 1 hour"
    assert shown.splitlines()[3].split() == ["shop", "critical", "666666667", "0.26", "0.26", "0.00"]
    hourly = ask("-f", "-", "--usage", "-n", "shop", "--all", given=charged).output
    assert hourly.splitlines()[3].split()[:3] == ["0s", "shop", "critical"]
    assert "preemptible" not in ask("-f", "-", "--usage", "--min-priority", "500000000", given=charged).output

    rows = list(csv.DictReader(io.StringIO(ask("-f", "-", "--usage", "-o", "csv", given=charged).output)))
    assert rows[0] == {
        "hour": "0",
        "namespace": "crawler",
        "priorityClass": "preemptible",
        "priority": "333333334",
        "resource": "cpu",
        "resourceHours": "0.211111111",
    }


def test_usage_goes_without_questions_about_disruptions(charged: str) -> None:
    found = ask("-f", "-", "--usage", "--in-vain", given=charged)

    assert found.exit_code == 1
    assert "--usage excludes --owner, --cause, --in-vain and -o html" in found.output


def test_a_run_without_recorded_usage_is_reported(drained: str) -> None:
    raw = json.loads(drained)
    del raw["usage"]

    assert "no usage was recorded" in ask("-f", "-", "--usage", given=json.dumps(raw)).output
    raw["usage"] = [{"hour": "one"}]
    refused = ask("-f", "-", "--usage", given=json.dumps(raw))
    assert refused.exit_code != 0
    assert "is not a list of what namespaces used" in str(refused.exception) + refused.output
