"""Reading scenarios."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import load_text
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.scenario.steps import Announce, Apply, Finish, Remove, SetPower
from tests.sim.objects import documents, scenario
from tests.store.objects import SECOND, Raw, node, pod

FINISH = {"finish": {"name": "a"}}


def read(*objects: Raw) -> Scenario:
    return split_documents(documents(*objects))[1]


def error_of(*objects: Raw) -> str:
    with pytest.raises(InputError) as caught:
        read(*objects)
    return str(caught.value)


def test_a_scenario_is_separated_from_the_objects() -> None:
    objects, found = split_documents(documents(node("n1"), scenario(until="2m"), pod("a")))

    assert [one.raw["kind"] for one in objects] == ["Node", "Pod"]
    assert (found.name, found.until_ns) == ("test", 120 * SECOND)


def test_without_a_scenario_there_is_nothing_to_play() -> None:
    assert read(node("n1")) == Scenario(name="", until_ns=None, steps=())


def test_kinds_that_podium_does_not_read_are_left_out() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}

    assert split_documents(documents(config)) == ([], Scenario())


def test_the_example_of_the_documentation_is_read() -> None:
    text = """
    apiVersion: podium.dev/v1alpha1
    kind: Scenario
    metadata: {name: example-1}
    spec:
      until: 2m
      steps:
      - at: 0s
        apply:
        - {apiVersion: v1, kind: Node, metadata: {name: n1}}
        - {apiVersion: v1, kind: Node, metadata: {name: n2}}
      - at: 30s
        delete: {kind: Pod, namespace: shop, name: a}
      - at: 40s
        finish: {namespace: shop, name: b}
    """

    found = split_documents(load_text(text, "example.yaml"))[1]

    assert [(step.at_ns // SECOND, type(step.change)) for step in found.steps] == [
        (0, Apply),
        (0, Apply),
        (30, Remove),
        (40, Finish),
    ]
    assert [step.change for step in found.steps[2:]] == [Remove("Pod", "shop/a"), Finish("shop/b")]


def test_steps_are_sorted_by_time_and_stay_in_order_within_one() -> None:
    found = read(scenario(*({"at": at, "finish": {"name": name}} for at, name in (("2s", "a"), (1, "b"), ("1s", "c")))))

    assert [step.change for step in found.steps] == [Finish("default/b"), Finish("default/c"), Finish("default/a")]


def test_cluster_scoped_objects_are_named_without_namespace() -> None:
    (step,) = read(scenario({"at": "0s", "delete": {"kind": "Node", "name": "n1"}})).steps

    assert step.change == Remove("Node", "n1")


def test_maintenance_is_announced_and_then_takes_the_node_down_and_up_again() -> None:
    found = read(scenario({"at": "1m", "maintenance": {"name": "n1", "in": "10m", "for": "5m"}}))

    assert [(step.at_ns // SECOND, step.change) for step in found.steps] == [
        (60, Announce("n1", 600 * SECOND)),
        (660, SetPower("n1", is_up=False)),
        (960, SetPower("n1", is_up=True)),
        (960, Announce("n1", None)),
    ]


def test_without_an_end_a_node_is_taken_down_for_good() -> None:
    found = read(scenario({"at": "1m", "maintenance": {"name": "n1", "in": "10m"}}))

    assert [type(step.change) for step in found.steps] == [Announce, SetPower]


def test_two_scenarios_are_one_too_many() -> None:
    second = {**scenario(), "metadata": {"name": "other"}}

    assert "Scenario other: is a second scenario" in error_of(scenario(), second)
    assert '.kind: is "ReschedulerConfiguration"' in error_of(scenario() | {"kind": "ReschedulerConfiguration"}, second)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ({**FINISH}, ".spec.steps[0].at: is missing, and must be given"),
        ({"at": "0s"}, ".spec.steps[0]: does nothing; a step has exactly one of apply, delete, evict,"),
        ({"at": "0s", "apply": [], **FINISH}, ".spec.steps[0]: has apply and finish; a step has exactly one"),
        ({"at": "soon", **FINISH}, '.spec.steps[0].at: "soon" is not a duration'),
        ({"at": True, **FINISH}, ".spec.steps[0].at: true is not a duration"),
        ({"at": "-1s", **FINISH}, '.spec.steps[0].at: "-1s" is too short; write 0s or more'),
        ({"at": "0s", "when": 1, **FINISH}, '.spec.steps[0]: there is no field "when"; known are: at, repeat,'),
        ({"at": "0s", "finish": "a"}, '.spec.steps[0].finish: "a" is not an object'),
        ({"at": "0s", "finish": {}}, ".spec.steps[0].finish.name: is missing, and must be given"),
        ({"at": "0s", "finish": {"name": 7}}, ".spec.steps[0].finish.name: 7 is not text"),
        ({"at": "0s", "finish": {"name": ""}}, ".spec.steps[0].finish.name: is empty; text is needed"),
        ({"at": "0s", "finish": {"name": "a", "x": 1}}, '.spec.steps[0].finish: there is no field "x"'),
        ({"at": "0s", "delete": {"name": "a"}}, ".spec.steps[0].delete.kind: is missing, and must be given"),
        ({"at": "0s", "delete": {"kind": "Gadget", "name": "a"}}, 'delete.kind: the kind "Gadget" is not simulated'),
        ({"at": "0s", "delete": {"kind": "Pod", "name": "a", "grace": 1}}, 'delete: there is no field "grace"'),
        ({"at": "0s", "delete": {"kind": "Pod"}}, ".spec.steps[0].delete.name: is missing, and must be given"),
        ({"at": "0s", "delete": {"kind": "Node", "name": "a", "namespace": "b"}}, "delete.namespace: is not needed"),
        ({"at": "0s", "delete": {"kind": "Node", "name": "a", "outright": True}}, "delete.outright: is for pods"),
        ({"at": "0s", "usage": {"name": "a"}}, ".spec.steps[0].usage.memory: is missing, and must be given"),
        ({"at": "0s", "usage": {"name": "a", "memory": "much"}}, ".spec.steps[0].usage.memory: "),
        ({"at": "0s", "usage": {"name": "a", "memory": [1]}}, "usage.memory: a list is not a quantity"),
        ({"at": "0s", "usage": {"name": "a", "memory": 1, "x": 1}}, 'usage: there is no field "x"'),
        ({"at": "0s", "usage": {"name": "a", "cpu": "-1"}}, 'usage.cpu: "-1" is negative; write 0 or more'),
        (
            {"at": "0s", "usage": {"name": "a", "cpu": {}}},
            'usage.cpu: an object is not a quantity; write it as in "500m" or "1Gi"',
        ),
        (
            {"at": "0s", "usage": {"name": "a", "cpu": 1, "kind": "Node"}},
            'usage.kind: "Node" is not one of "CronJob", ',
        ),
        ({"at": "0s", "trouble": {"crashAfter": "5s"}}, "trouble.name: is missing, and must be given"),
        ({"at": "0s", "trouble": {"name": "n1", "crashAfter": "now"}}, 'trouble.crashAfter: "now" is not a duration'),
        ({"at": "0s", "trouble": {"name": "n1", "crashAfter": 1, "pods": "app in"}}, "trouble.pods: label selector"),
        (
            {"at": "0s", "trouble": {"name": "n1", "pods": "app=web"}},
            "trouble.pods: needs crashAfter or rejectAfter",
        ),
        (
            {"at": "0s", "trouble": {"name": "n1", "crashAfter": 1, "rejectAfter": 2}},
            "trouble.rejectAfter: cannot be combined with crashAfter",
        ),
        ({"at": "0s", "maintenance": {"name": "n1"}}, "maintenance.in: is missing, and must be given"),
        ({"at": "0s", "maintenance": {"name": "n1", "in": "-1h"}}, 'maintenance.in: "-1h" is too short'),
        (
            {"at": "0s", "maintenance": {"name": "n1", "in": "1h", "until": "2h"}},
            'maintenance: there is no field "until"',
        ),
        (
            {"at": "0s", "evict": {"name": "a", "avoidNode": "long"}},
            'evict.avoidNode: "long" is not true or false or an object',
        ),
        ({"at": "0s", "evict": {"name": "a", "avoidNode": {"expireAfter": "long"}}}, "evict.avoidNode.expireAfter: "),
        ({"at": "0s", "evict": {"name": "a", "avoidNode": {"for": "1h"}}}, 'evict.avoidNode: there is no field "for"'),
        (
            {"at": "0s", "evict": {"name": "a", "avoidNode": {"untilScheduled": {}}}},
            "evict.avoidNode.untilScheduled.name: is missing, and must be given",
        ),
        (
            {"at": "0s", "evict": {"name": "a", "avoidNode": {"untilReplaced": {"name": "b", "uid": "u"}}}},
            'evict.avoidNode.untilReplaced: there is no field "uid"',
        ),
        (
            {
                "at": "0s",
                "evict": {"name": "a", "avoidNode": {"untilReplaced": {"name": "b"}, "untilScheduled": {"name": "c"}}},
            },
            "evict.avoidNode.untilReplaced: cannot be combined with untilScheduled",
        ),
        ({"at": "0s", "evict": {"name": "a", "replacement": True}}, "evict.replacement: true is not an object"),
        (
            {"at": "0s", "evict": {"name": "a", "replacement": {"first": "yes"}}},
            'evict.replacement.first: "yes" is not true or false',
        ),
        (
            {"at": "0s", "evict": {"name": "a", "replacement": {"nodeName": "N 1"}}},
            'evict.replacement.nodeName: "N 1" is not a valid name',
        ),
        (
            {"at": "0s", "evict": {"name": "a", "replacement": {"node": "n"}}},
            'evict.replacement: there is no field "node"; did you mean nodeName?',
        ),
        (
            {"at": "0s", "evict": {"name": "a", "gracePeriodSeconds": -1}},
            "evict.gracePeriodSeconds: -1 is out of range; it must be >= 0",
        ),
        ({"at": "0s", "evict": {"name": "a", "component": 7}}, "evict.component: 7 is not text"),
        ({"at": "0s", "cordon": {}}, ".spec.steps[0].cordon.name: is missing, and must be given"),
        ({"at": "0s", "uncordon": {"name": "n1", "x": 1}}, 'uncordon: there is no field "x"'),
        ({"at": "0s", "apply": {}}, ".spec.steps[0].apply: an object is not a list"),
        ({"at": "0s", "apply": ["x"]}, '.spec.steps[0].apply[0]: "x" is not an object'),
        ({"at": "0s", "apply": [{"apiVersion": "v1", "kind": "Gadget"}]}, 'the kind "Gadget" is not simulated'),
        (
            {"at": "0s", "apply": [pod("ok"), pod("a", cpu="much")]},
            ".spec.steps[0].apply[1].spec.containers[0].resources.requests.cpu: Pod default/a",
        ),
    ],
)
def test_a_step_error_names_its_field(step: Raw, error: str) -> None:
    found = error_of(scenario(step))

    assert found.startswith("test.json, document 1, Scenario test, ")
    assert error in found


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"apiVersion": "podium.dev/v2"}, '.apiVersion: is "podium.dev/v2"; podium.dev/v1alpha1 is needed'),
        ({"kind": "Story"}, '.kind: is "Story"; Scenario is needed'),
        ({"spec": []}, ".spec: a list is not an object"),
        ({"spec": {"until": "-1s"}}, '.spec.until: "-1s" is too short; write 0s or more'),
        ({"spec": {"steps": "x"}}, '.spec.steps: "x" is not a list'),
        ({"spec": {"stepz": []}}, '.spec: there is no field "stepz"; did you mean steps?'),
        ({"status": {}}, 'there is no field "status"; known are: apiVersion, kind, metadata, spec'),
        ({"metadata": "x"}, '.metadata: "x" is not an object'),
    ],
)
def test_a_scenario_error_names_its_field(change: dict[str, Any], error: str) -> None:
    assert error in error_of({**scenario(), **change})
