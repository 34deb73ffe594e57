"""A real kubectl."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tests.server.kubectl.cluster import Cluster
from tests.store.objects import Raw
from tests.waiting import GUARD_SECONDS


def program() -> str | None:
    """Return the kubectl on PATH, or the one that KUBECTL names."""
    return shutil.which(os.environ.get("KUBECTL", "kubectl"))


@cache
def minor_version() -> int:
    """Return the 32 of a kubectl 1.32."""
    found = subprocess.run(
        [str(program()), "version", "--client", "-o", "json"], capture_output=True, check=True, timeout=GUARD_SECONDS
    )
    minor = json.loads(found.stdout)["clientVersion"]["minor"]
    return int(re.sub(r"\D", "", minor))


class Kubectl:
    """Calls kubectl for a namespace of a cluster, with a home of its own."""

    def __init__(self, cluster: Cluster, home: Path, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        # No call lives long enough to need its garbage collector, which takes a tenth of its time.
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC", "GOGC": "off"}

    def __call__(self, *arguments: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
        """Return what kubectl prints; it must succeed."""
        code, out, err = self.run(arguments, stdin, environment)
        assert code == 0, f"kubectl {' '.join(arguments)}: exit {code}\n{out}{err}"
        return out

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Return what kubectl says where it fails; it must."""
        code, out, err = self.run(arguments, stdin)
        assert code, f"kubectl {' '.join(arguments)}: succeeds\n{out}{err}"
        return err

    def run(
        self, arguments: Sequence[str], stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Return the exit code, and what kubectl prints to where."""
        with self.start(*arguments, environment=environment) as process:
            out, err = process.communicate(stdin, timeout=GUARD_SECONDS)
            return process.returncode, out, err

    @contextmanager
    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """Kubectl while it goes on, at most until the block ends."""
        with subprocess.Popen(
            [str(program()), "-s", self.cluster.url, "-n", self.namespace, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self._environment, **(environment or {})},
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    # In short

    def rows(self, *arguments: str) -> list[list[str]]:
        """Return the rows of a table, without its head, each in words that two spaces part."""
        lines = self(*arguments).splitlines()[1:]
        return [re.split(r" {2,}", line.strip()) for line in lines if line.strip()]

    def head(self, *arguments: str) -> list[str]:
        """Return the head of a table."""
        return re.split(r" {2,}", self(*arguments).splitlines()[0].strip())

    def read(self, *arguments: str) -> Any:
        """Return an object as JSON."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def apply(self, *objects: Raw, arguments: Sequence[str] = ("apply",)) -> str:
        """Apply objects, or do with them what the arguments say."""
        return self(*arguments, "-f", "-", stdin=json.dumps(listed(*objects)))

    def managed(self, *arguments: str) -> list[Raw]:
        """Return the managed fields of an object, which kubectl hides unless it is asked for them."""
        found = json.loads(self("get", *arguments, "-o", "json", "--show-managed-fields"))
        entries: list[Raw] = found["metadata"].get("managedFields", [])
        return entries

    def until(self, condition: Callable[[], bool]) -> None:
        """Ask again and again until the answer is yes."""
        deadline = time.monotonic() + GUARD_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it does not come about"

    def until_gone(self, kind: str) -> None:
        """Wait until there is no object of the kind any more."""
        for name in self("get", kind, "-o", "name").split():
            self.wait(name, "delete")

    def wait(self, what: str, condition: str) -> None:
        """Wait until an object has a condition, is gone (`delete`), or has a value (`jsonpath={PATH}=VALUE`)."""
        path, _, wanted = condition.removeprefix("jsonpath=").rpartition("=")
        if path and condition.startswith("jsonpath=") and minor_version() < 23:
            self.until(lambda: self("get", what, "-o", f"jsonpath={path}") == wanted)
            return
        code, out, err = self.run(["wait", what, f"--for={condition}", "--timeout=60s"])
        # Older ones fail where there is nothing left to wait for.
        is_gone = condition == "delete" and "no matching resources" in err
        assert not code or is_gone, f"kubectl wait {what} --for={condition}\n{out}{err}"


def listed(*objects: Raw) -> Raw:
    """Objects as a List."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
