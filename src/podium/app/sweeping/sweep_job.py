"""A sweep on a cluster: an Indexed Job, each pod of which plays a shard of the runs.

The pods read the plan of the sweep from its folder, and keep the outcomes there. Podium needs the rights to create, get
and delete Jobs and to list pods; with the right to list events it also reports why pods cannot be created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from podium.api.errors import InputError, PodiumError
from podium.api.input.codec import load_files
from podium.api.meta import Raw, objects_at, value_at
from podium.api.versions.release import own_version
from podium.apirequests.request import Request, Response, Verb
from podium.app.console.options import ClusterSource
from podium.app.snapshots.cluster import open_session
from podium.client.session import Session, answer_with_retries
from podium.store.errors import Suppressed
from podium.store.listing import ListOptions

_POLL_S = 2.0
_FORBIDDEN, _NOT_FOUND = 403, 404
# Containers wait for these reasons before each start.
_STARTING = (None, "ContainerCreating", "PodInitializing")
_CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_TEMPLATE: Raw = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "spec": {
        # A new pod plays only what has no outcome yet. Pods that are preempted or evicted do not count as failures.
        "backoffLimitPerIndex": 5,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "ttlSecondsAfterFinished": 86_400,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "sweep", "image": f"podium:{own_version()}", "securityContext": _CONTAINER}],
            }
        },
    },
}
Say = Callable[[str], None]


def completed_job(name: str, folder: str, pods: int, jobs: int, image: str | None, job_file: str | None) -> Raw:
    """Return the Job of the file, or the usual one, with that name; each of its pods plays ``jobs`` runs at a time.

    Raises InputError if the file is not a Job.
    """
    job = deepcopy(_TEMPLATE)
    if job_file is not None:
        documents = load_files([job_file], "strict")
        if [document.raw["kind"] for document in documents] != ["Job"]:
            raise InputError("is not one Job", source=job_file)
        job = deepcopy(documents[0].raw)
    job["metadata"] = {**job.get("metadata", {}), "name": name}
    job["spec"] |= {"completionMode": "Indexed", "completions": pods, "parallelism": pods}
    containers = job["spec"]["template"]["spec"]["containers"]
    containers[0] = {
        # With the end of its log, a failed pod says what was wrong.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": str(jobs), "memory": f"{jobs}Gi"}},
        **containers[0],
        "image": image or containers[0]["image"],
        "args": ["sweep", f"--folder={folder}", f"--shard=$(JOB_COMPLETION_INDEX)/{pods}", f"--jobs={jobs}"],
    }
    return job


def add_plan(job: Raw, plan: str) -> Raw:
    """Let the pods of a Job play the plan; return the Job."""
    job["spec"]["template"]["spec"]["containers"][0]["args"].append(f"--planned={plan}")
    return job


async def run_job(context: str, job: Raw, plan: Callable[[], str], watch: Callable[[str], None], say: Say) -> None:
    """Run a Job until it is complete, and delete it; if it exists, wait for it, and replace one that has failed.

    ``plan`` stores the plan of a new Job, and returns its name. ``watch`` receives the numbers of pods now and then,
    ``say`` what keeps pods from running, once for each cause. Raises PodiumError if the Job fails or is deleted.
    """
    async with open_session(ClusterSource(context), "podium-sweep") as session:
        namespace = job["metadata"].get("namespace") or session.access.namespace or "default"
        name = job["metadata"]["name"]
        there = _Job(session, namespace, name)
        found = await there.read()
        if _condition(found, "Failed"):
            await there.delete()
            while found := await there.read():
                await asyncio.sleep(_POLL_S)
        verb = "runs" if found is None else "goes on"
        found = found or (await there.ask("create", "Job", body=add_plan(job, plan()))).object
        say(f"Job {namespace}/{name} {verb}, also if you interrupt this command; give it again to follow the Job")
        reported = set[str]()
        while not _condition(found, "Complete"):
            problems = {text: owner for owner, text in await there.problems() if text not in reported}
            reported.update(problems)
            for text, owner in problems.items():
                say(f"{owner}: {text}")
            if failure := _condition(found, "Failed"):
                indexes, advice = value_at(found, "status", "failedIndexes"), "the same command plays what is missing"
                message = f"{failure.get('message', '')}; indexes: {indexes or 'none'}"
                raise PodiumError(f"Job {namespace}/{name} has failed: {message}; {advice}")
            active, failed = (value_at(found, "status", which) or 0 for which in ("active", "failed"))
            watch(f"{active:,} pods active, {failed:,} failed")
            await asyncio.sleep(_POLL_S)
            found = await there.read()
            if found is None:
                raise PodiumError(f"Job {namespace}/{name} has been deleted; the same command plays what is missing")
        await there.delete()


class _Job:
    """A Job on a cluster."""

    def __init__(self, session: Session, namespace: str, name: str) -> None:
        self._session, self._namespace, self._name = session, namespace, name

    async def ask(self, verb: Verb, kind: str, **request: Any) -> Response:
        """Return the response to a request about objects of the Job's namespace. Raises StoreError, NoAnswerError."""
        namespace = "" if "key" in request else self._namespace
        return await answer_with_retries(self._session, Request(verb=verb, kind=kind, namespace=namespace, **request))

    async def read(self) -> Raw | None:
        """Return the Job as it is; None if there is none."""
        with Suppressed(_NOT_FOUND):
            return (await self.ask("get", "Job", key=f"{self._namespace}/{self._name}")).object
        return None

    async def delete(self) -> None:
        """Delete the Job, and its pods in the background."""
        body = {"propagationPolicy": "Background"}
        await self.ask("delete", "Job", key=f"{self._namespace}/{self._name}", body=body)

    async def problems(self) -> list[tuple[str, str]]:
        """Return what keeps pods from running, each with the pod, or with the Job if it cannot create pods."""
        options = ListOptions(label_selector=f"batch.kubernetes.io/job-name={self._name}")
        pods = (await self.ask("list", "Pod", options=options)).objects()
        options = ListOptions(field_selector=f"involvedObject.name={self._name},type=Warning")
        events: list[Raw] = []
        with Suppressed(_FORBIDDEN):
            events = (await self.ask("list", "Event", options=options)).objects()
        found = [(f"Job {self._name}", str(event.get("message", ""))) for event in events]
        return found + [(f"pod {pod['metadata']['name']}", text) for pod in pods for text in _problems_of(pod)]


def _condition(job: Raw | None, type_: str) -> Raw:
    """Return the condition of a type if it is true, else an empty one."""
    found = objects_at(job, "status", "conditions")
    return next((each for each in found if each.get("type") == type_ and each.get("status") == "True"), {})


def _problems_of(pod: Raw) -> Iterator[str]:
    """Yield why a pod does not run: it is not scheduled, a container cannot start or has failed, or it was evicted."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason"):
        yield f"{status['reason']}: {status.get('message', '')}"
    for condition in objects_at(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield f"is not scheduled: {condition.get('message', '')}"
    for container in objects_at(status, "containerStatuses"):
        state = container.get("state", {})
        waits, ended = state.get("waiting", {}), state.get("terminated", {})
        if waits.get("reason") not in _STARTING:
            yield f"{waits['reason']}: {waits.get('message', '')}"
        if ended.get("exitCode"):
            yield f"{ended.get('reason', 'Error')}, exit code {ended['exitCode']}: {ended.get('message', '').strip()}"
