"""Machine-readable explanations of preemption with victims on several nodes."""

from typing import Any

from podium.app.explaining.explainer import Explainer
from tests.builders import ZONE, configuration, explain, node, pod, term

WEB = {"app": "web"}
OBJECTS = [
    *(node(f"{zone}{number}", zone=zone) for zone in "ab" for number in (1, 2)),
    pod("w1", on="a1", labels=WEB),
    pod("w2", on="a2", labels=WEB),
    pod("w3", on="b1", labels=WEB, priority=5),
    pod("p", priority=9, apart=[term("app=web", ZONE)]),
]


def reported(**args: Any) -> dict[str, Any]:
    return explain(OBJECTS, settings=configuration({"DefaultPreemption": args})).to_dict()


def test_victims_on_other_nodes_are_reported_with_node_and_reason() -> None:
    found = reported(acrossNodes=True)["preemption"]

    assert found["candidates"]["a1"]["victims"] in (["default/w1", "default/w2"], ["default/w2", "default/w1"])
    assert found["candidates"]["a1"]["elsewhere"] == {"default/w2": "a2"}
    assert "elsewhere" not in found["candidates"]["b1"]
    assert found["reasons"] == dict.fromkeys(("default/w1", "default/w2"), f"anti-affinity over {ZONE}")
    assert found["search"]["isComplete"] is True


def test_unexamined_nodes_are_a_caveat_of_the_answer() -> None:
    caveats = {one["about"]: one for one in reported(acrossNodes=True, maxSearchSteps=1)["caveats"]}

    assert caveats["search-cut"]["count"] == 3
    assert "maxSearchSteps, 1: 3 nodes were not examined" in caveats["search-cut"]["message"]
    assert not [one for one in reported(acrossNodes=True)["caveats"] if one["about"] == "search-cut"]


def test_without_the_arguments_search_and_reasons_are_omitted() -> None:
    found = reported()["preemption"]

    assert not {"search", "reasons"} & found.keys()


def test_explain_names_preemptors_of_a_placed_pod_even_if_it_moves() -> None:
    settings = configuration({"DefaultPreemption": {"acrossNodes": True}})

    takers = {
        key: [(taker.name, is_chosen) for taker, is_chosen in placed.preemptors]
        for key in ("default/w2", "default/w3")
        if (placed := Explainer(OBJECTS, settings, now_ns=0).explain(key).placed) is not None
    }

    assert takers == {"default/w2": [("p", True)], "default/w3": [("p", False)]}
