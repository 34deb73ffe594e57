"""Sessions: `podium use`, and questions that it answers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from podium.app.cluster import Cluster
from podium.app.console.command import main
from podium.app.console.options import ClusterSource, Source
from podium.app.console.reading import read_shown
from podium.app.using import client, session
from podium.app.using.session import SessionServer, UseOptions, stamps_of
from tests.app import forked
from tests.app.planning.small import node, pod, priority_class, replica_set, written
from tests.app.processes import START, run
from tests.waiting import GUARD_SECONDS

CLUSTER = (
    node("a"),
    node("b"),
    replica_set("web", 2),
    pod("web-0", "3", on="a", owner="web"),
    pod("web-1", "3", on="b", owner="web"),
    pod("waits", "2", priority=5),
)
HOUR_NS = 3600 * 10**9
IMPATIENT = f"from podium.app.using import session; session._PATIENCE_SECONDS = 2.0; {START}"
"""A session that waits a shorter time for clients that say nothing."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    written(folder, *CLUSTER)
    written(folder, pod("new", "1"), name="new.json")
    written(folder, priority_class("high", 1000), name="class.json")
    used = enter(folder, "use", "cluster.json", code=IMPATIENT)
    assert used.returncode == 0, used.stderr
    assert used.stdout == "using 2 nodes, 3 pods, 6 objects of cluster.json; podium use --stop ends that\n"
    yield folder
    assert enter(folder, "use", "--stop").stdout == "ended\n"


def test_a_session_answers_the_same_environment_by_any_name_of_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    own = client.identity()
    monkeypatch.setattr(sys, "executable", f"{sys.executable}-another-name")
    assert client.identity() == own

    monkeypatch.setattr(sys, "prefix", "/another/environment")
    assert client.identity() != own


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_RUNTIME_DIR": str(folder)}


def enter(
    folder: Path, *words: str, given: str = "", code: str = START, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a folder, with the sessions of that folder."""
    sessions = {"XDG_RUNTIME_DIR": str(folder), **variables}
    return run(*words, code=code, given=given, folder=folder, real=False, **sessions)


@pytest.fixture
def asked(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run command lines as `enter` does, but in this process."""
    monkeypatch.chdir(home)
    file = tmp_path / "given"

    def ask(*words: str, sessions: Path = home, given: str = "", **variables: str) -> tuple[int, str, str]:
        file.write_text(given)
        with monkeypatch.context() as patched, file.open() as standard_input:
            patched.setattr(sys, "stdin", standard_input)
            for name, value in {"XDG_RUNTIME_DIR": str(sessions), **variables}.items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(list(words))
        code = ended.value.code
        return (code if isinstance(code, int) else 0), *capfd.readouterr()

    return ask


Asked = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("explain waits {cluster}", 0),
        ("explain rs/web {cluster} -o json", 0),
        ("explain waits {cluster} --kubernetes-version 1.33 --node a", 0),
        ("explain gone {cluster}", 1),
        ("explain waits {cluster} -o xml", 1),
        ("explain --help", 0),
        ("plan pending {cluster}", 0),
        ("plan pending {cluster} --override class.json --validate strict", 0),
        ("plan fit new.json {cluster} --fail-on any", 0),
        ("plan deploy - {cluster} -o github", 0),
        ("plan survive rs/web {cluster} -o csv", 0),
        ("plan drain a {cluster} --fail-on any --timeline", 2),
        ("plan change rs/web replicas=3 {cluster} -o markdown", 0),
        ("plan change rs/web relicas=3 {cluster}", 1),
    ],
)
def test_an_answer_of_a_session_is_that_of_the_command_itself(
    question: str, code: int, home: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = json.dumps(pod("new"))
    replies: list[object] = []
    send = client.send

    def noted(*request: Any) -> Any:
        replies.append(send(*request))
        return replies[-1]

    with monkeypatch.context() as patched:
        patched.setattr(client, "send", noted)
        answer = asked(*question.format(cluster="").split(), given=given)

    named = asked(*question.format(cluster="-f cluster.json").split(), sessions=home / "none", given=given)

    assert answer == named
    assert (answer[0], replies) == (code, [{"code": code}])
    assert "Traceback" not in answer[2]


def test_a_process_asks_the_session(home: Path) -> None:
    answer = enter(home, "explain", "waits")

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout == enter(home, "explain", "waits", "-f", "cluster.json").stdout


def on_a_terminal(folder: Path, *words: str, columns: int) -> bytes:
    """Return what a command prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
    variables = {**environment(folder), "TERM": "xterm"}
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        variables.pop(name, None)
    # No bar disturbs the answer, however slow the machine is.
    process = forked.start(
        START, *words, stdout=theirs, stderr=subprocess.DEVNULL, stdin=theirs, cwd=folder, env=variables
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(ours)
    process.wait()
    return shown


@pytest.mark.parametrize("columns", [60, 160])
def test_a_session_sees_the_terminal_of_its_client(columns: int, home: Path) -> None:
    named = on_a_terminal(home, "plan", "drain", "a", "-f", "cluster.json", columns=columns)

    assert on_a_terminal(home, "plan", "drain", "a", columns=columns) == named
    assert b"\x1b[1m" in named


def test_a_command_line_that_names_a_cluster_is_not_for_the_session(home: Path, asked: Asked) -> None:
    written(home, node("other"), pod("here"), name="other.json")

    assert asked("explain", "here", "-f", "other.json")[1].startswith("default/here fits: node other\n")
    assert "on 1 of 1 node;" in asked("plan", "fit", "new.json", "--cluster", "other.json")[1]


def waiting_for_input(folder: Path) -> subprocess.Popen[str]:
    """Start a question that reads its manifests from a pipe, and wait until the session has it."""
    asked = forked.start(
        START, "plan", "deploy", "-", stdin=subprocess.PIPE, text=True, cwd=folder, env=environment(folder)
    )
    wait_until(lambda: answering(asked))
    return asked


def test_ctrl_c_ends_the_question_and_not_the_session(home: Path) -> None:
    with waiting_for_input(home) as asked:
        asked.send_signal(signal.SIGINT)

        assert asked.wait(GUARD_SECONDS) == 130
    assert enter(home, "use").stdout == "using 2 nodes, 3 pods, 6 objects of cluster.json\n"


def test_an_interrupt_that_comes_with_its_question_is_left_for_later() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        text = json.dumps({"identity": []}).encode()
        socket.send_fds(ours, [len(text).to_bytes(client.LENGTH_BYTES)], [0, 1, 2])
        ours.sendall(text + client.INTERRUPT)

        theirs.settimeout(GUARD_SECONDS)
        _, descriptors = session._received(theirs)

        for descriptor in descriptors:
            os.close(descriptor)
        assert theirs.recv(8) == client.INTERRUPT


def test_an_interrupt_that_has_no_effect_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    ended, signals = threading.Event(), list[int]()

    def kill(_process: int, number: int) -> None:
        signals.append(number)
        if len(signals) == 2:
            ended.set()

    with ours, theirs:
        ours.sendall(client.INTERRUPT)
        ours.close()
        with monkeypatch.context() as patched:
            patched.setattr(os, "kill", kill)
            patched.setattr(session, "_INTERRUPTED_AGAIN_SECONDS", 0)
            session._watch(theirs, ended)

    assert signals == [signal.SIGINT, signal.SIGINT, signal.SIGTERM]


def test_a_question_ends_with_its_client(home: Path) -> None:
    with waiting_for_input(home) as asked:
        asked.kill()

        wait_until(lambda: not answering(asked))


def answering(asked: subprocess.Popen[str]) -> list[str]:
    """Return the processes that read the standard input of a question in its place."""
    assert asked.stdin is not None
    pipe = os.readlink(f"/proc/self/fd/{asked.stdin.fileno()}")
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # Processes and their files may be gone, or another user's.
        with suppress(OSError):
            if any(os.readlink(file) == pipe for file in (process / "fd").iterdir()):
                found.append(process.name)
    return sorted({*found} - {str(os.getpid()), str(asked.pid)})


def wait_until(is_so: Any) -> None:
    end = time.monotonic() + GUARD_SECONDS
    while not is_so():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = Path(written(tmp_path, node("a"), pod("web")))
    enter(tmp_path, "use", str(file))
    try:
        before = enter(tmp_path, "explain", "web").stdout
        file.write_text(file.read_text().replace('"name": "a"', '"name": "changed"'))
        status = enter(tmp_path, "use").stdout
        after = enter(tmp_path, "explain", "web").stdout
        file.unlink()
        gone = enter(tmp_path, "explain", "web")
    finally:
        enter(tmp_path, "use", "--stop")

    assert before.startswith("default/web fits: node a\n")
    assert status == "the next question reads the cluster again: its files have changed\n"
    assert after.startswith("default/web fits: node changed\n")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.startswith(f"podium: error: {file}: ")
    assert gone.stderr.endswith("; podium use has chosen this cluster, podium use --stop ends that\n")


def test_a_session_ends_by_itself_and_by_command(tmp_path: Path) -> None:
    written(tmp_path, *CLUSTER)
    path = tmp_path / "podium" / "session"

    enter(tmp_path, "use", "cluster.json", "--idle", "100ms")
    wait_until(lambda: not path.exists())

    assert enter(tmp_path, "use").stdout == "no cluster is used; podium use FILE or podium use --context NAME\n"
    assert enter(tmp_path, "use", "--stop").stdout == "no cluster is used\n"
    nothing = enter(tmp_path, "explain", "waits")
    assert (nothing.returncode, "or podium use FILE first" in nothing.stderr) == (1, True)


def test_a_cluster_that_cannot_be_read_is_not_used(tmp_path: Path, asked: Asked) -> None:
    failed = asked("use", "gone.json", sessions=tmp_path)

    assert failed == (1, "", "podium: error: gone.json: No such file or directory\n")
    assert asked("use", "-", sessions=tmp_path, given="{}")[0] == 1
    assert not (tmp_path / "podium" / "session").exists()


def test_the_socket_is_for_its_user_alone(home: Path) -> None:
    path = home / "podium" / "session"

    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.lstat().st_mode) == 0o700


@pytest.mark.parametrize("trouble", ["open", "link", "file"])
def test_a_folder_that_others_may_enter_is_neither_used_nor_trusted(trouble: str, tmp_path: Path, asked: Asked) -> None:
    folder, real = tmp_path / "podium", tmp_path / "real"
    real.mkdir(mode=0o700)
    if trouble == "open":
        folder.mkdir(mode=0o755)
    elif trouble == "link":
        folder.symlink_to(real)
    else:
        folder.touch()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str((real if trouble == "file" else folder) / "session"))
    listener.listen()

    code, _, problem = asked("explain", "waits", sessions=tmp_path)
    used = asked("use", "cluster.json", sessions=tmp_path)

    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()
    assert (code, "Nothing to read" in problem) == (1, True)
    assert (used[0], str(folder) in used[2]) == (1, True)


def request(**fields: Any) -> bytes:
    text = json.dumps({"identity": client.identity(), **fields}).encode()
    return len(text).to_bytes(client.LENGTH_BYTES) + text


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\0",
        b"\xff\xff\xff\xff{}",
        b"\0\0\0\x02[]",
        b"\0\0\0\x02{}",
        b"\0\0\0\x05\xff\xff\xff\xff\xff",
        (100_000).to_bytes(4) + b"[" * 100_000,
        request(ask={"words": ["explain"]}),
        request(more=1),
        request(ask=7),
    ],
)
def test_a_request_that_is_none_gets_no_reply_and_leaves_the_session_as_it_is(
    sent: bytes, home: Path, asked: Asked
) -> None:
    for descriptors in ([], [0, 0, 0], [0] * 20):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(GUARD_SECONDS)
            connection.connect(str(home / "podium" / "session"))
            # The session may have closed the connection after the first bytes.
            with suppress(ConnectionResetError, BrokenPipeError):
                if sent:
                    socket.send_fds(connection, [sent[:4]], descriptors)
                    connection.sendall(sent[4:])
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""

    assert asked("use")[1] == "using 2 nodes, 3 pods, 6 objects of cluster.json\n"


def test_clients_that_say_nothing_do_not_keep_others_waiting_for_long(home: Path) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(session.MOST_AT_ONCE)]
    for connection in silent:
        connection.connect(str(home / "podium" / "session"))

    assert enter(home, "use").stdout == "using 2 nodes, 3 pods, 6 objects of cluster.json\n"
    for connection in silent:
        connection.close()


def test_an_outdated_session_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "podium").mkdir(mode=0o700)
    file = written(tmp_path, *CLUSTER)
    live = UseOptions(Source((file,), ClusterSource("c")), None, HOUR_NS, HOUR_NS, str(tmp_path), "")
    with SessionServer(live, Cluster(read_shown([file], None)), stamps_of((file,))) as found:
        mine = client.identity()

        assert found._outdated(mine) == ""
        assert found._outdated([*mine[:2], "/other/podium"]) == "it belongs to another installation of Podium"
        monkeypatch.setattr(time, "monotonic_ns", lambda: found._read_ns + HOUR_NS + 1)
        assert found._outdated(mine) == "the cluster was read some time ago"
        Path(file).touch()
        os.utime(file, (1, 1))
        assert found._outdated(mine) == "its files have changed"
        monkeypatch.setattr(session, "code_stamps", dict)
        assert found._outdated(mine) == "the code of Podium has changed"


def test_kubectl_asks_its_own_cluster(home: Path) -> None:
    code = "import sys; from podium.app.console.command import main; main(sys.argv[1:], 'kubectl podium')"

    asked = run("explain", "waits", code=code, XDG_RUNTIME_DIR=str(home), KUBECONFIG=str(home / "none"))

    assert asked.returncode == 1
    assert "none" in asked.stderr


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("podium plan drain ", ["a", "b"]),
        ("podium plan drain a ", ["a", "b"]),
        ("podium plan nodes --like b", ["b"]),
        ("podium explain w", ["waits", "web-0", "web-1"]),
        ("podium explain rs/", ["rs/web"]),
        ("podium explain -n shop rs/", ["rs/default/web"]),
        ("podium plan change rs", ["rs/web"]),
        ("podium explain waits --node ", ["a", "b"]),
        ("podium plan pending -n ", ["default"]),
        ("podium plan pending --context ", ["blue", "green"]),
    ],
)
def test_names_are_completed_from_the_session(line: str, names: list[str], home: Path, asked: Asked) -> None:
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("green", "blue")]
    (home / "config").write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "contexts": contexts}))
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "KUBECONFIG": str(home / "config")}

    assert asked(_PODIUM_COMPLETE="bash_complete", **words)[1].split() == [f"plain,{name}" for name in names]


def test_a_process_completes_names_from_the_session(home: Path) -> None:
    words = {"COMP_WORDS": "podium plan drain ", "COMP_CWORD": "3", "_PODIUM_COMPLETE": "bash_complete"}

    assert enter(home, **words).stdout.split() == ["plain,a", "plain,b"]


def test_without_a_session_no_name_is_offered(tmp_path: Path, asked: Asked) -> None:
    words = {"COMP_WORDS": "podium plan drain ", "COMP_CWORD": "3", "KUBECONFIG": str(tmp_path / "none")}

    assert asked(sessions=tmp_path, _PODIUM_COMPLETE="bash_complete", **words)[1].strip() == ""
