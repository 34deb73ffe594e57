"""A kubelet for tests: it runs the containers of pods as processes of this machine, and kills some of them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import Any

import podium.testing
from tests.app import forked
from tests.app.processes import START

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "this-machine"},
    "status": {
        "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


class ProcessKubelet(threading.Thread):
    """Runs the first container of each pod that has a node: its arguments are those of `podium`.

    ``dies`` says of pods, by number, after how many new outcomes their process is killed; ``done`` returns how many
    outcomes there are.
    """

    def __init__(self, plane: podium.testing.ControlPlane, done: Callable[[], int], dies: dict[int, int]) -> None:
        super().__init__(daemon=True)
        self._plane, self._done, self._dies = plane, done, dies
        self._processes: dict[str, tuple[int, int, subprocess.Popen[str]]] = {}
        self._stops = threading.Event()
        self.started = self.killed = 0

    def run(self) -> None:
        while not self._stops.wait(0.05):
            for pod in self._plane.pods():
                self._keep(pod)

    def stop(self) -> None:
        self._stops.set()
        self.join()
        for _, _, process in self._processes.values():
            process.kill()
            if process.returncode is None:
                process.communicate()

    def _keep(self, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ("Succeeded", "Failed"):
            return
        if uid not in self._processes:
            self._processes[uid] = self.started, self._done(), self._start(pod)
            self.started += 1
            self._report(pod, "Running", {"running": {}})
        number, before, process = self._processes[uid]
        is_due = number in self._dies and self._done() - before >= self._dies[number]
        if is_due and process.poll() is None:
            process.kill()
            process.wait()
            self.killed += 1
        code = process.poll()
        if code is not None:
            _, log = process.communicate()
            ended = {"exitCode": code % 256, "reason": "Error" if code else "Completed", "message": log}
            self._report(pod, "Failed" if code else "Succeeded", {"terminated": ended})

    @staticmethod
    def _start(pod: dict[str, Any]) -> subprocess.Popen[str]:
        (container,) = pod["spec"]["containers"]
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        words = [word.replace("$(JOB_COMPLETION_INDEX)", index) for word in container["args"]]
        return forked.start(START, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def _report(self, pod: dict[str, Any], phase: str, state: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        status = {"name": "sweep", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        patch = {"status": {"phase": phase, "containerStatuses": [status]}}
        self._plane.patch("Pod", metadata["name"], patch, metadata["namespace"], "status")
