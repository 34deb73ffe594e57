"""A cluster is read once, and answers any number of questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.api.errors import InputError, PodiumError
from podium.app import cluster as clusters
from podium.app.explaining.explainer import Explainer
from podium.sim.results import disruption_state
from tests.api.dumps import dump, dumped_pod

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-1", "uid": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 10}},
}
EXTENDER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [{"urlPrefix": "http://rater:80", "filterVerb": "filter"}],
}


def waiting(number: int) -> dict[str, Any]:
    pod = dumped_pod(number)
    del pod["spec"]["nodeName"]
    return {**pod, "status": {"phase": "Pending"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump(NODE, dumped_pod(1), waiting(2), waiting(3))))
    return file


def test_each_question_is_answered_as_if_it_were_the_only_one(file: Path) -> None:
    cluster = podium.load(file)

    assert cluster.pending == ["default/web-5d4f-cx2zq", "default/web-5d4f-dx2zq"]
    for pod in (*cluster.pending, *cluster.pending):
        assert cluster.explain(pod).to_dict() == podium.explain(file, pod).to_dict()
    assert cluster.simulate(until="1m").to_dict() == podium.simulate(file, until="1m").to_dict()
    assert cluster.simulate(until="1m").to_dict() == podium.simulate(file, until="1m").to_dict()
    assert cluster.explain("web-5d4f-cx2zq").to_dict() == podium.explain(file, "web-5d4f-cx2zq").to_dict()


def test_decision_state_is_built_for_the_first_decision_and_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Explainer] = []

    class Counted(Explainer):
        def __init__(self, *given: Any, **named: Any) -> None:
            made.append(self)
            super().__init__(*given, **named)

    monkeypatch.setattr(clusters, "Explainer", Counted)
    cluster = podium.load(file)
    assert not made

    for pod in ("web-5d4f-cx2zq", "web-5d4f-dx2zq"):
        cluster.explain(pod)

    assert len(made) == 1


def test_disruption_state_is_computed_on_request(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    state = disruption_state.disruption_state

    def counted(*given: Any) -> disruption_state.DisruptionState:
        asked.append(1)
        return state(*given)

    monkeypatch.setattr("podium.app.explaining.explainer.disruption_state", counted)
    explanation = podium.load(file).explain("web-5d4f-cx2zq")
    assert not asked

    assert explanation.disruptions == explanation.disruptions == disruption_state.DisruptionState()
    assert len(asked) == 1


def test_progress_is_the_share_of_all_files_read(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.yaml", "c.json")]
    pods = [dump(*({**dumped_pod(1), "metadata": {"name": f"{name}-{n}"}} for n in range(600))) for name in "abc"]
    for file, value in zip(files, pods, strict=True):
        file.write_text(json.dumps(value, indent=1))
    files[1].write_text("apiVersion: v1\nkind: List\nitems:\n" + "- {apiVersion: v1, kind: Event}\n" * 20_000)
    shares: list[float] = []

    podium.load(files, progress=shares.append)

    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.9 < shares[-1] <= 1
    assert all(any(third / 3 < one < (third + 1) / 3 for one in shares) for third in range(3))


def test_a_configuration_is_judged_when_the_cluster_is_loaded(file: Path) -> None:
    with pytest.raises(InputError, match=r"\.extenders: has 1 of them"):
        podium.load(file, EXTENDER)

    assert podium.load(file, EXTENDER, ignore_extenders=True).explain("web-5d4f-cx2zq").caveats


def test_a_pod_that_is_not_there_is_named_however_often_it_is_asked_for(file: Path) -> None:
    cluster = podium.load(file)

    for _ in range(2):
        with pytest.raises(PodiumError, match="pod default/web is not in the input"):
            cluster.explain("web")
