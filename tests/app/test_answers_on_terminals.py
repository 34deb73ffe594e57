"""The output of commands on terminals of any width and in pipes, with node names of cloud providers."""

import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.app.console import output
from podium.app.console.command import podium
from podium.app.console.page import Page

EXAMPLES = Path(__file__).parents[2] / "examples" / "plan"
NODE = re.compile(r"ip-10-0-1-1(\d)\.eu-west-1\.compute\.internal")
AWS, GKE = "ip-10-0-12-{}.eu-west-1.compute.internal", "gke-prod-general-purpose-pool-1-3f2a9c1d-x7k{}"
AKS = "aks-nodepool1-12345678-vmss00000{}"
ASKED = (
    ["explain", "shop/fe-66b5f7c9d8-m7p4d", "--all-nodes"],
    ["explain", "deploy/fe", "-n", "shop"],
    ["simulate", "--events"],
    ["plan", "drain", "NODE", "--timeline", "--pods", "--nodes"],
    ["plan", "deploy", str(EXAMPLES / "checkout.yaml")],
    ["plan", "fit", str(EXAMPLES / "checkout.yaml")],
    ["plan", "survive", "deploy/report", "-n", "shop"],
    ["plan", "pending"],
    ["reschedule"],
)
each_question = pytest.mark.parametrize("asked", ASKED, ids=lambda asked: " ".join(asked[:2]))


@pytest.fixture(autouse=True)
def _collects_garbage() -> Iterator[None]:
    """Commands do without the collector, as they have a process to themselves."""
    yield
    gc.enable()


def cluster(provider: str, folder: Path) -> tuple[str, list[str]]:
    """Return a file with a cluster whose nodes have such names, and these names."""
    file = folder / "cluster.yaml"
    text = (EXAMPLES / "cluster.yaml").read_text()
    file.write_text(NODE.sub(lambda found: provider.format(found[1]), text))
    return str(file), [provider.format(number) for number in (1, 2, 3)]


def answer(asked: list[str], file: str, node: str) -> list[str]:
    arguments = [node if argument == "NODE" else argument for argument in asked]
    result = CliRunner().invoke(podium, [*arguments, "-f", file], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@each_question
@pytest.mark.parametrize(("provider", "width"), [(GKE, 60), (AWS, 100), (AKS, 220)])
def test_on_a_terminal_no_line_is_longer_than_that(
    provider: str, width: int, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "new_page", lambda: Page(width, shortened=True))
    file, nodes = cluster(provider, tmp_path)

    lines = answer(asked, file, nodes[0])

    assert [line for line in lines if len(line) > width] == []
    assert width < 220 or not any("…" in line for line in lines)


@each_question
def test_elsewhere_all_names_are_whole(asked: list[str], tmp_path: Path) -> None:
    file, nodes = cluster(GKE, tmp_path)

    text = "\n".join(answer(asked, file, nodes[0]))

    assert "…" not in text
    assert "begin with" not in text
    assert set(re.findall(r"gke-[\w-]*", text)) <= set(nodes)
