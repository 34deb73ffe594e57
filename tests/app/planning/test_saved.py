"""Saved plans, and what `podium plan check` finds out about them."""

from __future__ import annotations

import gzip
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, written

CLUSTER = (
    node("a"),
    node("b"),
    replica_set("web", 2),
    pod("web-0", on="a", owner="web"),
    pod("web-1", on="b", owner="web"),
)


def opened(file: str) -> Raw:
    found: Raw = json.loads(gzip.decompress(Path(file).read_bytes()))
    return found


def saved(folder: Path, *question: str, cluster: tuple[Raw, ...] = CLUSTER) -> str:
    """Ask a question about a cluster, and return the file of the saved plan."""
    file = str(folder / "question.plan")
    ask(*question, "-f", written(folder, *cluster), "--save", file)
    return file


def checked(file: str, cluster: str, *options: str, code: int) -> Raw:
    found: Raw = json.loads(ask("check", file, "-f", cluster, "-o", "json", *options, code=code).stdout)
    return found


def test_the_same_cluster_gives_the_same_answer(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a", "--timeout", "5m")

    found = checked(file, str(tmp_path / "cluster.json"), code=0)

    assert (found["sameAnswer"], found["sameCluster"], found["objects"], found["answer"]) == (True, True, {}, {})
    assert ask("check", file, "-f", str(tmp_path / "cluster.json")).stdout.startswith(
        "same answer; the cluster has not changed\n  plan drain, saved at "
    )


@pytest.mark.parametrize("question", [("drain", "a"), ("pending",)])
def test_the_end_of_a_name_chooses_what_is_saved_and_several_files_may_be(
    question: tuple[str, ...], tmp_path: Path
) -> None:
    cluster, plan = written(tmp_path, *CLUSTER), str(tmp_path / "plan.json")
    scenarios = [tmp_path / "scenario.yaml", tmp_path / "scenario.yml"]

    ask(*question, "-f", cluster, "--save", str(scenarios[0]), "--save", plan, "--save", str(scenarios[1]))

    assert checked(plan, cluster, code=0)["question"] == question[0]
    assert [file.read_text().startswith(f"# podium simulate -f {file.name}") for file in scenarios] == [True, True]


@pytest.mark.parametrize("name", ["x.plan", "x.yaml"])
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    """Beside a scenario there would be a file with the change that helps."""
    target = tmp_path / "missing" / name

    result = ask("pending", "-f", written(tmp_path, node("a"), pod("web", "5")), "--save", str(target), code=1)

    assert f"{target}: cannot be written: No such file or directory" in result.stderr


def test_objects_that_came_went_and_changed_are_listed_by_kind_beside_the_lines_that_differ(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a")
    web_0 = pod("web-0", "2", on="a", owner="web")
    later = written(
        tmp_path, node("a"), replica_set("web", 2), web_0, budget("web", maxUnavailable=0), name="later.json"
    )

    found = checked(file, later, code=2)

    assert found["objects"] == {
        "Node": {"added": [], "removed": ["b"], "changed": []},
        "Pod": {"added": [], "removed": ["default/web-1"], "changed": ["default/web-0"]},
        "PodDisruptionBudget": {"added": ["default/web"], "removed": [], "changed": []},
    }
    assert found["headline"] == "the answer has changed; 4 objects changed"
    assert any("blocked" in line for line in found["answer"]["findings"]["after"])
    text = ask("check", file, "-f", later, code=2).stdout
    assert "  Pod                      0        1        1  - default/web-1, ~ default/web-0\n" in text


def test_a_change_of_the_cluster_that_changes_no_answer_ends_with_0(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a")
    later = written(tmp_path, *CLUSTER, priority_class("high", 1000), name="later.json")

    found = checked(file, later, code=0)

    assert (found["sameAnswer"], found["sameCluster"]) == (True, False)
    assert found["objects"] == {"PriorityClass": {"added": ["high"], "removed": [], "changed": []}}


def test_a_new_version_of_an_object_with_equal_contents_is_no_change(tmp_path: Path) -> None:
    def at(version: str) -> Raw:
        found = node("a")
        found["metadata"].update(resourceVersion=version, generation=int(version))
        return found

    file = saved(tmp_path, "fail", "a", cluster=(at("1"),))

    assert checked(file, written(tmp_path, at("2"), name="later.json"), code=0)["sameCluster"]


@pytest.mark.parametrize(
    "question",
    [
        ("deploy", "{folder}/new/web.json", "--seed", "7"),
        ("deploy", "{folder}/new"),
        ("fit", "{folder}/new/web.json", "--replicas", "2", "--preempt"),
        ("nodes", "--add", "2", "--like", "a", "--until", "1m"),
        ("change", "rs/web", "replicas=5"),
        ("change", "--patch-file", "{folder}/patch.json"),
        ("diff", "--after", "{folder}/high.json"),
        ("drain", "-l", "kubernetes.io/hostname in (a, b)", "--parallel", "--override", "{folder}/high.json"),
        ("pending",),
        ("survive", "rs/web", "--outcomes", "--samples", "3"),
        ("upgrade", "--to", "1.35"),
        ("reschedule",),
    ],
)
def test_each_question_is_asked_again_as_it_was_without_its_files(question: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    files = [
        written(tmp_path / "new", pod("new", "3"), name="web.json"),
        written(tmp_path, priority_class("high", 1000), name="high.json"),
    ]
    patch = tmp_path / "patch.json"
    patch.write_text(
        json.dumps(
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
        )
    )
    file = saved(tmp_path, *(word.format(folder=tmp_path) for word in question))
    for name in (*files, str(patch)):
        Path(name).unlink()

    found = checked(file, str(tmp_path / "cluster.json"), code=0)

    assert (found["question"], found["sameAnswer"]) == (question[0], True)


def test_a_saved_plan_is_for_its_owner_alone_and_names_neither_the_cluster_nor_the_output(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a", "-o", "json", "--timeline", "--fail-on", "blocked")

    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    found = opened(file)
    assert found["arguments"] == {"nodes": ["a"]}
    assert "cluster.json" not in json.dumps(found)


def test_standard_input_cannot_be_saved(tmp_path: Path) -> None:
    from click.testing import CliRunner  # noqa: PLC0415

    from podium.app.console.command import podium as command  # noqa: PLC0415

    words = ["plan", "deploy", "-", "-f", written(tmp_path, *CLUSTER), "--save", str(tmp_path / "x")]
    result = CliRunner().invoke(command, words, input=json.dumps(pod("new")))

    assert (result.exit_code, (tmp_path / "x").exists()) == (1, False)
    assert "standard input cannot be read again" in result.stderr


def test_another_version_of_podium_or_kubernetes_is_a_caveat(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a")
    Path(file).write_text(json.dumps({**opened(file), "podium": "0.0.9", "kubernetes": "v1.31.0"}))

    text = ask("check", file, "-f", str(tmp_path / "cluster.json")).stdout

    assert 'the saved answer is that of Podium "0.0.9", the new one that of ' in text
    assert 'the saved answer is that of Kubernetes "v1.31.0"' in text


def _with(**fields: Any) -> Callable[[Raw], Any]:
    return lambda plan: {**plan, **fields}


PLUGIN: Raw = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "tests.app.planning.evil_when_imported:Plugin"}]}}}],
}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda _: [], "is not a plan that --save has written"),
        (lambda _: {}, "missing required field"),
        (_with(kind="Pod"), "is not a SavedPlan of podium.dev/v1alpha1"),
        (_with(more=1), "unknown field"),
        (_with(question="check"), '"check" is not a question of podium plan'),
        (_with(question="../../x"), "is not a question of podium plan"),
        (_with(arguments={"nodes": ["a"], "save": "/tmp/written"}), 'takes no "save" from a saved plan'),
        (_with(arguments={"kubeconfig": "/etc/passwd"}), 'takes no "kubeconfig" from a saved plan'),
        (_with(arguments={"allows_exec_plugins": True}), 'takes no "allows_exec_plugins" from a saved plan'),
        (_with(arguments={"config": "/etc/passwd"}), 'takes no "config" from a saved plan'),
        (_with(arguments={"overrides": ["/etc/passwd"]}), 'takes no "overrides" from a saved plan'),
        (_with(files={"nodes": [{"a": "x"}]}), 'takes no "nodes" from a saved plan'),
        (_with(arguments={"nodes": ["a"], "timeout_ns": "-5m"}), "negative"),
        (_with(arguments={"nodes": ["a"], "timeout_ns": True}), "is not a duration"),
        (_with(arguments={"nodes": ["--save=x"]}), "there is no node --save=x"),
        (_with(files={"config": [{"../x": "a: 1"}]}), "do not have one common name"),
        (_with(files={"config": [{"/tmp/x": "a: 1"}]}), "do not have one common name"),
        (_with(files={"config": [{"x": "a: 1", "y": "a: 1"}]}), "do not have one common name"),
        (_with(files={"config": [{}]}), "do not have one common name"),
        (_with(files={"config": [{"x\0": "a: 1"}]}), "do not have one common name"),
        (_with(files={"config": [{"x" * 300: "a: 1"}]}), "name too long"),
        (_with(files={"config": [{"x": json.dumps(PLUGIN)}]}), "nor a saved plan loads code"),
    ],
)
def test_a_forged_file_runs_loads_reads_and_writes_nothing(
    change: Callable[[Raw], Any], error: str, tmp_path: Path
) -> None:
    file = saved(tmp_path, "drain", "a")
    Path(file).write_text(json.dumps(change(opened(file))))
    before = sorted(tmp_path.rglob("*"))

    result = ask("check", file, "-f", str(tmp_path / "cluster.json"), code=1)

    assert error in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/written").exists()


@pytest.mark.parametrize(
    "content", [b"", b"\x1f\x8b\x08", b"[" * 100_000, b"\xff\xfe{}", pytest.param(None, id="128 MiB of zeros")]
)
def test_what_is_no_plan_is_an_error_in_one_line(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "x.plan"
    file.write_bytes(gzip.compress(b"0" * (1 << 27)) if content is None else content)

    result = ask("check", str(file), "-f", written(tmp_path, *CLUSTER), code=1)

    assert result.stderr.startswith(f"podium: error: {file}: ")
    assert result.stderr.count("\n") == 1


def test_a_plugin_of_the_saved_configuration_is_loaded_only_if_the_command_line_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "saved_plan_plugins.py").write_text(
        "class Own:\n    name = 'Own'\n    def filter(self, state, pod, node): return None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    place = "saved_plan_plugins:Own"
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": place}]}}}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**PLUGIN, "profiles": [profile]}))
    file = saved(tmp_path, "fail", "a", "--config", str(config))
    cluster = str(tmp_path / "cluster.json")

    assert "nor a saved plan loads code" in ask("check", file, "-f", cluster, code=1).stderr
    assert checked(file, cluster, "--plugin", place, code=0)["sameAnswer"]


def test_a_check_needs_a_cluster(tmp_path: Path) -> None:
    file = saved(tmp_path, "drain", "a")

    assert "Nothing to read" in ask("check", file, code=1).stderr
