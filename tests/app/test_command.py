"""The command as a whole: its imports, exit codes and help."""

import json
import re
import shlex
import signal
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podium import __main__
from podium.api.input import codec
from podium.app.bench.command import WorkloadSize, bench
from podium.app.console import reading
from podium.app.console.command import FOR_DEVELOPERS, FOR_KUBECTL, KUBECTL_PLUGIN, SUBCOMMANDS, main, podium
from podium.app.explaining.command import explain
from podium.app.simulating.command import simulate
from tests.app.processes import START, run

ROOT = Path(__file__).parents[2]
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "1", "pods": 9}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
IMPORTED = f"""
import atexit, sys
slow = ("numpy", "rich", "rich_click", "yaml", "msgspec")
atexit.register(lambda: print(*(name for name in slow if name in sys.modules)))
{START}
"""


@pytest.mark.parametrize(
    "args", [["--help"], ["-h"], ["explain", "--help"], ["simulate", "--help"], ["sweep", "--help"]]
)
def test_help_imports_nothing_that_is_slow(args: list[str]) -> None:
    ended = run(*args, code=IMPORTED, real=True)

    assert ended.returncode == 0
    assert ended.stdout.startswith("Usage: podium ")
    assert ended.stdout.splitlines()[-1] == ""


INTERRUPTED = """
import importlib.abc, os, signal, sys

class Interruption(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "podium.app.console.command":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interruption())
from podium.__main__ import main
main()
"""


def test_ctrl_c_while_the_command_is_loaded_ends_it_without_a_traceback() -> None:
    ended = run("version", code=INTERRUPTED, real=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_the_command_gets_ctrl_c_as_it_was_before_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("sys.argv", ["podium", "version"])

    with pytest.raises(SystemExit) as ended:
        __main__.main()

    assert ended.value.code == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_explaining_a_pod_imports_no_search_for_gangs_or_other_nodes_and_no_cel(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    full = NODE | {"status": {"allocatable": {"cpu": "1", "pods": 0}}}
    cluster.write_text("\n".join(json.dumps(each) for each in (full, POD)))
    code = f"""
import atexit, sys
searches = ("wide", "gang.descent", "gang.gang_search", "gang.packing", "gang.units")
names = ["podium.decide.preempting." + name for name in searches] + ["podium.api.cel.values", "podium.api.cel.compiler"]
atexit.register(lambda: print("imported:", *(name for name in names if name in sys.modules)))
{START}
"""

    ended = run("explain", "web", "-f", str(cluster), code=code, real=True)

    assert ended.stdout.splitlines()[-1] == "imported:", ended.stdout + ended.stderr


def test_help_names_every_subcommand_as_that_one_describes_itself() -> None:
    text = CliRunner().invoke(podium, ["--help"]).stdout

    listed = re.findall(r"^  (\w+)  +(.+)$", text.partition("Commands:")[2], re.MULTILINE)
    assert [name for name, _ in listed] == [name for name in SUBCOMMANDS if name not in FOR_KUBECTL]
    for name, _ in listed:
        assert CliRunner().invoke(podium, [name, "--help"]).exit_code == 0


def test_deleting_by_hand_is_a_command_of_the_kubectl_plugin_alone() -> None:
    refused = CliRunner().invoke(podium, ["delete", "pod", "web"])
    helped = CliRunner().invoke(podium, ["delete", "--help"], prog_name=KUBECTL_PLUGIN)

    assert (refused.exit_code, "use kubectl podium delete" in refused.stderr) == (1, True)
    assert helped.stdout.startswith("Usage: kubectl podium delete ")
    assert "  delete " in CliRunner().invoke(podium, ["--help"], prog_name=KUBECTL_PLUGIN).stdout


@pytest.mark.parametrize(
    ("words", "name", "namespace"),
    [
        (["--context", "shop"], "podium", "shop"),
        (["--context", "plain"], "podium", "default"),
        (["--context", "shop", "-n", "default"], "podium", "default"),
        ([], KUBECTL_PLUGIN, "shop"),
        (["-n", "other"], KUBECTL_PLUGIN, "other"),
        (["-f", "pod.json"], KUBECTL_PLUGIN, "default"),
    ],
)
def test_a_target_without_a_namespace_is_in_that_of_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str, namespace: str
) -> None:
    contexts = [{"name": "shop", "context": {"cluster": "c", "namespace": "shop"}}]
    contexts.append({"name": "plain", "context": {"cluster": "c"}})
    clusters = [{"name": "c", "cluster": {"server": "https://c.example.com"}}]
    config = {"current-context": "shop", "contexts": contexts, "clusters": clusters}
    (tmp_path / "config").write_text(json.dumps(config))
    (tmp_path / "config").chmod(0o600)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    pods = [{**POD, "metadata": {"name": "web", "namespace": each}} for each in ("shop", "default", "other")]
    (tmp_path / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, *pods]}))
    read = codec.read_input([str(tmp_path / "list.json")])
    monkeypatch.setattr(reading, "read_shown", lambda *_: read)
    for command in (["explain", "web"], ["plan", "survive", "web"]):
        done = CliRunner().invoke(podium, [*command, *words], prog_name=name)
        assert f"{namespace}/web" in done.output + str(done.exception)


def _commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands, each with the names that lead to it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        _, found, _ = group.resolve_command(context, [name])
        assert found is not None
        if isinstance(found, click.Group):
            yield from _commands(found, f"{path}{name} ")
        else:
            yield f"{path}{name}", found


def test_every_command_that_takes_objects_in_files_takes_a_context_too() -> None:
    options = {name: {text for given in found.params for text in given.opts} for name, found in _commands(podium)}

    assert {"explain", "simulate", "bench", "up"} <= {name for name, texts in options.items() if "-f" in texts}
    assert [name for name, texts in options.items() if "-f" in texts and "--context" not in texts] == []


def test_the_version_is_the_installed_one() -> None:
    try:
        expected, code = f"podium {metadata.version('podium')}\n", 0
    except metadata.PackageNotFoundError:
        expected, code = "", 1

    result = CliRunner().invoke(podium, ["--version"])

    assert (result.stdout, result.exit_code) == (expected, code)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("help", "--help"),
        ("help plan drain", "plan drain --help"),
        ("version", "--version"),
        ("version --client", "--version"),
    ],
)
def test_help_and_version_may_be_written_as_commands(words: str, options: str) -> None:
    result, expected = (CliRunner().invoke(podium, text.split()) for text in (words, options))

    assert (result.exit_code, result.stdout) == (expected.exit_code, expected.stdout)


def test_help_lists_the_commands_for_developers_apart() -> None:
    text = CliRunner().invoke(podium, ["--help"]).stdout

    assert re.findall(r"^  (\w+)  ", text.partition("For developers:")[2], re.MULTILINE) == list(FOR_DEVELOPERS)


def test_every_command_names_the_cluster_and_the_file_to_write_by_the_same_options() -> None:
    parameters = [given for _, command in _commands(podium) for given in command.params]
    files = [given for given in parameters if given.name == "files"]
    told = [given for given in parameters if isinstance(given, click.Option) and given.metavar == "FILE"]
    written = [given for given in told if re.match(r"Save|Write|Log|Append|Record|Where to write", given.help or "")]
    answers = [given for given in parameters if given.name in ("target", "answer_file", "save")]

    assert all(given.opts == ["-f", "--filename", "--cluster"] for given in files)
    assert all(given.opts == ["--save"] for given in answers if isinstance(given, click.Option))
    # Decision 33: the files of servers have the names by which operators know them.
    of_servers = {"--audit-log-path", "--write-kubeconfig", "--ledger", "--decisions"}
    assert {name for given in written for name in given.opts} == {"--save", *of_servers}


def _example(command: click.Command) -> str:
    """Return the first command line that a help text gives as its example."""
    return _examples(command)[0]


def _examples(command: click.Command) -> list[str]:
    return [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("podium ")]


def test_the_example_of_explain_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shop = {**POD, "metadata": {"name": "web", "namespace": "shop"}}
    (tmp_path / "cluster.json").write_text(json.dumps(NODE))
    (tmp_path / "web.yaml").write_text(json.dumps(shop))

    result = CliRunner().invoke(podium, shlex.split(_example(explain))[1:])

    assert result.stdout.startswith("shop/web fits: node n\n")


def test_the_example_of_simulate_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    result = CliRunner().invoke(podium, shlex.split(_example(simulate))[1:])

    assert result.stdout.startswith("2m from ")


def test_the_example_of_a_trace_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = "".join(f"n{number},4000,1024,0,\n" for number in range(50))
    (tmp_path / "nodes.csv").write_text(f"sn,cpu_milli,memory_mib,gpu,model\n{nodes}")
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time"
    (tmp_path / "pods.csv").write_text(f"{columns}\np1,1000,64,0,0,,LS,5,65,5\n")

    result = CliRunner().invoke(podium, shlex.split(_examples(simulate)[1])[1:])

    assert result.stdout.startswith("1m1s from ")


def test_the_example_of_bench_is_one_that_it_takes() -> None:
    # click keeps the help option of the first context, which must have the program's settings.
    above = click.Context(podium, **podium.context_settings)
    context = bench.make_context("bench", shlex.split(_example(bench))[2:], parent=above)

    assert context.params["workloads"] == (WorkloadSize("basic", 1000), WorkloadSize("preemption"))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["explain", "web", "-f", "gone.yaml"], "gone.yaml: cannot be read: No such file or directory"),
        (["explain", "web", "-f", "."], ".: the directory has no .yaml, .yml, .json or .podium file"),
        (["explain", "web", "-f", "pod.json", "--config", "pod.json"], "pod.json, .kind: is "),
        (["explain", "web\x1b[31m", "-f", "pod.json"], "pod default/web\\x1b[31m is not in the input; "),
        (["explain", "web", "-f", "pod.json", "--scheduler", "x"], "pod default/web is for scheduler x, which is not"),
        (["simulate", "--trace", "x.csv", "--trace", "y.csv"], "x.csv: cannot be read: "),
    ],
)
def test_wrong_input_is_one_line_on_standard_error(
    args: list[str], error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if "pod.json" in args:
        (tmp_path / "pod.json").write_text(json.dumps(POD))

    result = CliRunner().invoke(podium, args)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"podium: error: {error}")
    assert result.stderr.count("\n") == 1
    assert result.stderr.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "args", [[], ["fly"], ["explain"], ["explain", "web"], ["explain", "web", "-f", "x", "-o", "xml"], ["plan"]]
)
def test_wrong_usage_ends_with_2(args: list[str]) -> None:
    assert CliRunner().invoke(podium, args).exit_code == 1


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time,scheduled_time"
    (tmp_path / "pods.csv").write_text(f"{columns}\n")
    target = tmp_path / "gone" / "out.json"
    files = ("--trace", str(tmp_path / "nodes.csv"), "--trace", str(tmp_path / "pods.csv"))

    result = CliRunner().invoke(podium, ["simulate", *files, "--save", str(target)])

    assert (result.exit_code, result.stderr) == (1, f"podium: error: {target}: No such file or directory\n")


def test_an_error_leaves_no_traceback_and_ends_with_1() -> None:
    ended = run("explain", "web", "-f", "gone.yaml")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "podium: error: gone.yaml: cannot be read: No such file or directory\n"


def test_a_closed_output_pipe_is_not_an_error() -> None:
    close_first = "import os, sys; r, w = os.pipe(); os.dup2(w, 1); os.close(r); os.close(w)\n" + START

    ended = run("--help", code=close_first, real=True)

    assert ended.stderr == ""


def test_an_interrupt_ends_quietly_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(codec, "read_input", interrupted)

    with pytest.raises(SystemExit) as ended:
        main(["explain", "web", "-f", "-"])

    assert ended.value.code == 130
    assert "".join(capsys.readouterr()).strip() == ""


def test_characters_that_the_output_s_encoding_lacks_are_written_as_escape_sequences() -> None:
    ended = run("simulate", "-f", str(ROOT / "examples" / "budget.yaml"), PYTHONIOENCODING="latin-1")

    assert ended.returncode == 0
    assert "\\u2588" in ended.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_there_for_the_shells_that_help_names(shell: str) -> None:
    ended = run(_PODIUM_COMPLETE=f"{shell}_source")

    assert ended.returncode == 0
    assert "podium" in ended.stdout


def test_subcommands_and_their_options_are_completed() -> None:
    names = run(_PODIUM_COMPLETE="bash_complete", COMP_WORDS="podium ex", COMP_CWORD="1")
    options = run(_PODIUM_COMPLETE="bash_complete", COMP_WORDS="podium explain --sch", COMP_CWORD="2")

    assert names.stdout.split() == ["plain,explain", "plain,exporter", "plain,examples"]
    assert options.stdout.split() == ["plain,--scheduler"]


def test_an_unknown_command_is_reported_with_a_suggestion() -> None:
    result = CliRunner().invoke(podium, ["simulat", "-f", "a.yaml"])

    assert result.exit_code == 1
    assert "There is no command 'simulat'; did you mean simulate?" in result.stderr


def test_a_traceback_is_shown_on_request(tmp_path: Path) -> None:
    asked = ["explain", "web", "-f", str(tmp_path / "none.yaml")]

    plain = CliRunner().invoke(podium, asked)
    traced = CliRunner().invoke(podium, ["--traceback", *asked])

    assert "Traceback" not in plain.stderr
    assert traced.stderr.startswith("Traceback (most recent call last):\n")
    assert traced.stderr.endswith(plain.stderr)
    assert (plain.exit_code, traced.exit_code) == (1, 1)
