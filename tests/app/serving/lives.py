"""`podium up` in a process of its own, and HTTP requests to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.app import forked
from tests.app.processes import START
from tests.waiting import GUARD_SECONDS


@dataclass
class Life:
    """A running server; ``log`` is its output."""

    process: subprocess.Popen[str]
    kubeconfig: Path
    log: list[str]

    @property
    def server(self) -> str:
        config = yaml.safe_load(self.kubeconfig.read_text())
        return str(config["clusters"][0]["cluster"]["server"])

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the code and the body of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def items(self, path: str) -> list[Any]:
        return list(self.ask("GET", path)[1]["items"])

    def wait_for(self, path: str, condition: Callable[[Any], bool]) -> Any:
        """Return the first object of a watch that fulfils a condition."""
        with urllib.request.urlopen(f"{self.server}{path}?watch=true", timeout=GUARD_SECONDS) as stream:
            for line in stream:
                found = json.loads(line)["object"]
                if condition(found):
                    return found
        raise AssertionError(f"{path} has ended")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Return the exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(GUARD_SECONDS)


@contextmanager
def up(folder: Path, *args: str, code: str = START, forks_workers: bool = False) -> Iterator[Life]:
    """Provide a server that has said that it is up. It runs in the folder, and ends with the block."""
    process = forked.start(
        code,
        "up",
        *args,
        forks_workers=forks_workers,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    timer = threading.Timer(GUARD_SECONDS, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        report: list[str] = []
        for line in process.stdout:
            report.append(line)
            if line.startswith("Ctrl-C"):
                break
        else:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        timer.cancel()
        path = next(line.partition("=")[2].strip() for line in report if "KUBECONFIG=" in line)
        yield Life(process, Path(path), report)
    finally:
        timer.cancel()
        if process.poll() is None:
            process.kill()
        process.communicate()
