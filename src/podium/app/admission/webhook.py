"""The admission webhook: follows a cluster by watches, and answers reviews with warnings, in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter

import msgspec
from aiohttp import web

from podium.api.errors import PodiumError
from podium.api.input.codec import Document, decode
from podium.api.input.json import without_nulls
from podium.api.kinds import KINDS as ALL_KINDS
from podium.api.meta import Kubernetes, Raw, object_at, plain
from podium.app.admission.certificate import RENEWED_DAYS, OwnCertificate
from podium.app.admission.decision import KINDS, decide
from podium.app.console.cells import listed
from podium.app.live.followed_cluster import WATCHES as FOLLOWED
from podium.app.live.followed_cluster import FollowedCluster, FollowingProgram
from podium.app.live.live_program import ProgramSettings
from podium.app.live.logs import Log
from podium.app.live.metrics import ProgramMetrics
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import LiveCluster

WATCHES = FOLLOWED | {"Deployment", "LimitRange", "ResourceClaimTemplate", "RuntimeClass"}
"""The kinds that the webhook watches: those from which new pods get defaults, too, and those that may be scaled."""

_KINDS = {(kind.group, kind.plural): kind.name for kind in ALL_KINDS.values() if kind.name in KINDS}

PATH = "/validate"
MAX_BODY_BYTES = 8 << 20
"""The size of the largest review that is read: two objects of the size that the API server accepts, and more."""

_REVIEW = "admission.k8s.io/v1"
_JSON = {"Content-Type": "application/json"}
_SECONDS = tuple(0.001 * 2**power for power in range(11))
# The share of the time limit in which a decision has to end, so that its answer comes in time.
_DECIDING = 0.8
_DAY_S = 86_400.0
_CONTAINER = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1000000"}}}
_LARGE = {"object": {"apiVersion": "v1", "kind": "Pod", "spec": {"priority": 10**9, "containers": [_CONTAINER]}}}
# How often the certificate in the webhook's configuration is checked.
_PUBLISHED_EACH_S = 60.0


class AdmissionSettings(ProgramSettings, frozen=True, kw_only=True):
    """The settings of the webhook.

    A review is answered within ``limit_s``, without warnings if need be; of more than ``concurrency`` at a time the
    others are, too. The certificate in ``certificate_folder`` is made here for the webhook ``self_signed_for``, "" for
    none.
    """

    limit_s: float = 0.1
    concurrency: int = 16
    self_signed_for: str = ""
    certificate_folder: str = ""


class AdmissionMetrics(ProgramMetrics):
    """The metrics of the webhook."""

    prefix = "podium_admission"

    def __init__(self) -> None:
        super().__init__()
        self.requests = self.counter(
            "podium_admission_requests", "Number of reviews by the kind of object and the result.", "kind", "result"
        )
        self.warnings = self.counter("podium_admission_warnings", "Number of warnings that were sent.")
        self.seconds = self.histogram(
            "podium_admission_duration_seconds", "Seconds until a review was answered.", buckets=_SECONDS
        )


class LiveAdmission(FollowingProgram):
    """The webhook as a program. It allows every request."""

    user_agent = "podium-admission"
    noun = "the webhook"
    # Decisions and observations share a lock, so that neither may hold up the event loop.
    runs_in_thread = True
    body_bytes = MAX_BODY_BYTES
    kinds = WATCHES
    metrics: AdmissionMetrics
    _settings: AdmissionSettings

    def __init__(self, access: ClusterAccess, settings: AdmissionSettings, log: Log) -> None:
        super().__init__(access, settings, log, AdmissionMetrics())
        self._deciding = ThreadPoolExecutor(1, "podium-admission")
        self._in_progress = 0
        self._is_warm = False
        self.posts = {PATH: self._review}

    def on_started(self) -> None:
        self._log.info("answering reviews", version=str(self.release), path=PATH)

    @property
    def in_sync(self) -> bool:
        """Whether decisions count the objects of all kinds."""
        cluster, shown = self._cluster, self.followed
        is_shown = shown is not None and shown.is_complete
        return self._is_warm and is_shown and cluster is not None and not cluster.unsynced

    def _ready(self) -> dict[str, str]:
        return super()._ready() | ({} if self.in_sync else {"decisions": "the cluster is not known yet"})

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        ending.callback(self._deciding.shutdown, wait=False, cancel_futures=True)
        ending.callback(asyncio.ensure_future(self._warm_up()).cancel)
        settings = self._settings
        if settings.self_signed_for:
            certificate = OwnCertificate(Path(settings.certificate_folder), settings.self_signed_for, self._session)
            await certificate.renew()
            ending.callback(asyncio.ensure_future(self._keep(certificate)).cancel)

    async def _warm_up(self) -> None:
        """Decide about a pod that fits nowhere, and may preempt all: the first decision fills the caches."""
        cluster = await self.known()
        warming = asyncio.get_running_loop().run_in_executor(
            self._deciding, self._decide, cluster, _LARGE, lambda: True
        )
        await asyncio.gather(warming, return_exceptions=True)
        self._is_warm = True

    async def _keep(self, certificate: OwnCertificate) -> None:
        """Renew the certificate in time, and publish it again where another manifest has replaced it."""
        made_s = perf_counter()
        while True:
            await asyncio.sleep(_PUBLISHED_EACH_S)
            try:
                if perf_counter() - made_s > RENEWED_DAYS * _DAY_S:
                    await certificate.renew()
                    made_s = perf_counter()
                    self._log.info("renewed the certificate", days=RENEWED_DAYS)
                elif await certificate.publish():
                    self._log.info("published the certificate again", into=self._settings.self_signed_for)
            except PodiumError as error:
                self._log.error("the certificate cannot be kept", problem=str(error))

    async def _review(self, request: web.Request) -> web.Response:
        """Answer an AdmissionReview: the request is allowed, with warnings if there is something to say in time."""
        began_s = perf_counter()
        try:
            review = msgspec.json.decode(await request.read())
            admission_request = object_at(review, "request")
            uid = admission_request["uid"]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
            uid, admission_request, review = None, {}, {}
        if not isinstance(uid, str) or review.get("apiVersion") != _REVIEW:
            self.metrics.requests.labels("other", "invalid").inc()
            return web.Response(status=400, text=f"an AdmissionReview of {_REVIEW} with a request is needed\n")
        kind, result, warnings = kind_of(admission_request), "other", list[str]()
        if kind and admission_request.get("operation") in ("CREATE", "UPDATE"):
            result, warnings = await self._warnings(admission_request, began_s)
            warnings += filter(None, (self._view_problem(),))
        self.metrics.requests.labels(kind or "other", result).inc()
        self.metrics.warnings.inc(len(warnings))
        response: Raw = {"uid": uid, "allowed": True, **({"warnings": warnings} if warnings else {})}
        answer = {"apiVersion": _REVIEW, "kind": "AdmissionReview", "response": response}
        self.metrics.seconds.observe(perf_counter() - began_s)
        return web.Response(body=msgspec.json.encode(answer), headers=_JSON)

    async def _warnings(self, request: Raw, began_s: float) -> tuple[str, list[str]]:
        """Return the result for metrics, and the warnings about a request."""
        cluster, limit_s = self.followed, self._settings.limit_s
        if cluster is None or not self.in_sync:
            return "unsynced", []
        if self._in_progress >= self._settings.concurrency:
            return "busy", []
        self._in_progress += 1
        ends_s = began_s + limit_s * _DECIDING
        loop = asyncio.get_running_loop()
        deciding = loop.run_in_executor(self._deciding, self._decide, cluster, request, lambda: perf_counter() < ends_s)
        deciding.add_done_callback(self._decided)
        try:
            async with asyncio.timeout(limit_s - (perf_counter() - began_s)):
                found = await asyncio.shield(deciding)
        except TimeoutError:
            return "timeout", []
        except Exception:
            return "failed", []
        return ("warned" if found else "silent"), list(found)

    def _decided(self, deciding: asyncio.Future[tuple[str, ...]]) -> None:
        """Log why a decision failed, also one that nothing waits for any more."""
        self._in_progress -= 1
        error = None if deciding.cancelled() else deciding.exception()
        if error is not None:
            self._log.info("a review could not be decided", 1, problem=f"{type(error).__name__}: {error}")

    def _decide(self, cluster: FollowedCluster, request: Raw, has_time: Callable[[], bool]) -> tuple[str, ...]:
        """Return the warnings about a request, on the thread that decides."""
        if not has_time():
            return ()
        with cluster.lock:
            decisions = cluster.decisions(self.now())
            given, old = (reviewed(request, name, cluster.known) for name in ("object", "oldObject"))
            if given is None:
                return ()
            return decide(decisions, given, None if old is None else old.object, has_time).warnings()

    def _view_problem(self) -> str:
        """Return why the warnings, or their absence, may be wrong: "" if the view of the cluster is in sync."""
        cluster = self._cluster
        if cluster is None or not self.in_sync:
            return "podium has checked nothing: its view of the cluster is not in sync yet"
        optional = self.watched().optional
        old = [kind for kind, each in cluster.reflectors.items() if each.machine.problem and kind not in optional]
        return f"podium's view of the cluster is not in sync: it cannot watch {listed(old, 3)}" if old else ""


def kind_of(request: Raw) -> str:
    """Return the kind whose new pods a request is about, "" if it is about none."""
    resource = object_at(request, "resource")
    return _KINDS.get((str(resource.get("group")), str(resource.get("resource"))), "")


def reviewed(request: Raw, name: str, known: Mapping[tuple[str, str], Kubernetes]) -> Document | None:
    """Return the object of that name in a request; for a Scale, the workload among the ``known`` that it scales.

    It has its namespace, and a name if that is not generated yet. A pod that is created has no uid, as its claims do
    not exist.
    """
    raw, namespace, kind = (
        without_nulls(object_at(request, name)),
        str(request.get("namespace") or ""),
        kind_of(request),
    )
    if raw.get("kind") not in (kind, "Scale"):
        return None
    if raw["kind"] == "Scale":
        workload = known.get((kind, f"{namespace}/{object_at(raw, 'metadata').get('name')}"))
        if workload is None:
            return None
        written = plain(workload)
        raw = {**written, "spec": {**written["spec"], "replicas": object_at(raw, "spec").get("replicas", 0)}}
    metadata = {"name": f"{object_at(raw, 'metadata').get('generateName', '')}new", **object_at(raw, "metadata")}
    if request.get("operation") == "CREATE":
        metadata.pop("uid", None)
    raw = {**raw, "metadata": {"namespace": namespace, **metadata}}
    return Document("the review", 1, raw, decode(raw))
