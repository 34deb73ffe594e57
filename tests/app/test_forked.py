"""Forked processes behave as real ones, which start Python anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app import forked
from tests.app.processes import run
from tests.waiting import GUARD_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a process its grandchildren")

STATE = """
import os, signal, sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream.errors, stream.line_buffering, stream.isatty(), stream.fileno())
print(sys.argv, sys.path, os.getcwd(), sorted(os.environ.items()), __name__, sorted(globals()))
print([signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGALRM)])
print(os.getppid(), os.getpgid(0), len(os.listdir("/proc/self/fd")), repr(sys.stdin.read()))
"""


def test_a_fork_has_what_a_new_process_has(tmp_path: Path) -> None:
    found, expected = (
        run("a", "b c", code=STATE, given="line\r\n", folder=tmp_path, real=real, OTHER="x") for real in (False, True)
    )

    assert expected.returncode == 0, expected.stderr
    assert found.stdout.splitlines() == expected.stdout.splitlines()
    assert found.stderr == expected.stderr
    assert f"\n{os.getpid()} " in found.stdout


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "import sys; sys.exit()",
        "import sys; sys.exit(300)",
        "import sys; sys.exit('why')",
        "1 / 0",
        "raise KeyboardInterrupt",
        "import os; os.kill(os.getpid(), 15)",
        "import os; os._exit(3)",
        "import os; print('lost'); os.close(1)",
        "import atexit; atexit.register(print, 'at the end'); print('first', end=' ')",
        "import threading; threading.Timer(0.0, print, ('of a thread',)).start()",
    ],
)
def test_a_fork_ends_as_a_new_process_does(code: str) -> None:
    ended, expected = (run(code=code, real=real) for real in (False, True))

    assert (ended.returncode, ended.stdout) == (expected.returncode, expected.stdout)
    assert ended.stderr.splitlines()[-1:] == expected.stderr.splitlines()[-1:]


def test_a_signal_reaches_a_fork() -> None:
    code = "import signal; print('ready', flush=True); signal.pause()"
    with forked.start(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)

        assert process.wait(GUARD_SECONDS) == -signal.SIGTERM


def test_a_process_with_other_settings_of_python_starts_anew() -> None:
    code = "import sys; print(sys.flags.optimize, 'podium.app.serving.run' in sys.modules)"

    assert run(code=code, PYTHONOPTIMIZE="2").stdout == "2 False\n"
    assert run(code=code, real=True).stdout.endswith(" False\n")
    assert run(code=code).stdout.endswith(" True\n")


def test_tests_after_one_that_changes_the_environment_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    server = forked._Server()
    server._is_usable = True

    monkeypatch.setenv("LANG", "tlh")
    assert not server.can_fork(os.environ)
    monkeypatch.undo()
    assert server.can_fork(os.environ)
