"""A control plane in one process: the store, the router before it, and the components around it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import msgspec

from podium.api.errors import PodiumError
from podium.api.meta import value_at
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.structural.structural import unfolded_bytes
from podium.api.workloads import POD_PATHS
from podium.apirequests import actions, authorization, router
from podium.apirequests.events import EventRecorder
from podium.apirequests.observations import aspects_of, first_seen, observation_of
from podium.apirequests.request import Answer, Request, Response, problem_of, run_conversation
from podium.controllers.actions import Record
from podium.controllers.controller import is_watched_kind
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.indexes import exchange
from podium.controllers.kubelets.pod_run import node_problems, pod_problems
from podium.controllers.observations import ActionFinished, ContainersExited, Observation, Problem
from podium.controlplane.account import DisruptionAccount
from podium.controlplane.action_events import ActionEvents
from podium.controlplane.component_names import GARBAGE_COLLECTOR, KUBELET, NAMESPACE_CONTROLLER, POD_COLLECTOR
from podium.controlplane.components import ControlPlaneSettings, components_of
from podium.controlplane.node_simulation import News, NodeLeases, NodePower
from podium.controlplane.required_objects import RequiredObjects
from podium.runtime.clock import Clock
from podium.runtime.live import LiveRuntime
from podium.runtime.runtime import Component, RequestedAction
from podium.store.api_resources import APIResources
from podium.store.cleanup import DeleteStep, GarbageCollector, NamespaceCleaner, Step
from podium.store.custom_kinds import DEFINITION
from podium.store.durable_journal import DurableJournal, JournalError
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from podium.store.webhook_calls import CallNeededError, WebhookAnswer, WebhookAnswers, WebhookCall

_LOG = logging.getLogger(__name__)
_EXPIRED_AT_ONCE = 100
_NODE, _POD = "Node", "Pod"
_TRIED_AGAIN_NS = 60 * 10**9
_COUNTED_EACH_NS = 20 * 10**9
# Clients delete a definition and its objects in one go, in this order.
_CUSTOM_OBJECTS_NS = 10**8
_PAUSE_NS = 1_000_000_000
# The maximum duration of a slice before the loop serves its connections again.
_SLICE_NS = 5_000_000

MOST_ENDED = 12_500
"""How many ended pods a cluster keeps (--terminated-pod-gc-threshold)."""


async def _no_call(call: WebhookCall) -> WebhookAnswer:
    return WebhookAnswer(problem=f'Post "{call.url}": webhooks are not called here')


class EmbeddedControlPlane:
    """A control plane, which answers requests and runs the components.

    Everything happens on one thread. `answer` may be called at any time; the owner of the thread calls `turn`, and
    again at the time that it returned, or when ``on_work`` was called since: a client has written.

    Actions of components take effect immediately, and the components observe all writes in order. With a ``journal`` a
    write is on disk before any client can see it. With an ``account`` all disruptions are recorded.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: ControlPlaneSettings,
        journal: DurableJournal | None = None,
        account: DisruptionAccount | None = None,
    ) -> None:
        self.store = store
        self.release = settings.release
        self.on_work: Callable[[], None] = lambda: None
        self.call: Callable[[WebhookCall], Awaitable[WebhookAnswer]] = _no_call
        """Calls a webhook."""
        self._clock = clock
        self._journal = journal
        self.account = account
        self.rules = settings.rules
        self.authorizer = authorization.Authorizer(store) if settings.authorizes_by_roles else None
        self._router = router.Router(store, rules=settings.rules, authorizer=self.authorizer, release=settings.release)
        self._recorder = EventRecorder()
        self._events = ActionEvents(store)
        now = clock.now()
        nodes = {node.metadata.uid: node for node in store.typed(Node)}
        self._power = NodePower(nodes.values(), now, has_kubelets=KUBELET not in settings.without)
        self._expiry = EventExpiry(store, now)
        self._leases = None if KUBELET in settings.without else NodeLeases(store, self._power.is_down)
        self._collectors = CleanupControllers(store, self._router.answer, self._with_answers, settings)
        self._required = RequiredObjects(store, settings.authority, settings.client_authority, settings.without)
        self._required.work(now)
        self.keep()
        # The request that is answered off the event loop: it alone may use the plane.
        self._off_loop: asyncio.Task[Response] | None = None
        self._calling: set[asyncio.Task[None]] = set()
        self._live = LiveRuntime(clock.now, self, self._listed, self._on_failure, self._power.news)
        self._components = {component.name: component for component in components_of(settings, nodes)}
        # The version up to which the components have observed the writes.
        self._shown = store.version
        kinds = [resource.name for resource in self.resources.all()]
        first = [(kind, first_seen(stored)) for kind in kinds for stored in store.objects(kind)]
        self._live.begin(list(self._components.values()), first)

    # Methods for the server

    @property
    def resources(self) -> APIResources:
        return self.store.resources

    def now(self) -> int:
        return self._clock.now()

    def answer(self, request: Request) -> Response:
        """Answer a request immediately. A refusal is a response. Do not send the response before `keep`."""
        return self._answer(request, self._clock.now())

    def _answer(self, request: Request, now: int) -> Response:
        self._begin(request, now)
        return self._finish(request, self._router.answer(request, now), now)

    async def respond(self, request: Request, size: int) -> Response:
        """Answer a request with a body of `size` bytes; one that may take long leaves the event loop meanwhile."""
        answers, now = WebhookAnswers(), self._clock.now()
        for _ in range(_MOST_CALLS):
            await self.idle()
            try:
                if self._takes_long(request, size):
                    # It goes on if the caller is cancelled.
                    task = self._off_loop = asyncio.ensure_future(self._answer_off_loop(request, answers, now))
                    task.add_done_callback(self._end_off_loop)
                    return await asyncio.shield(task)
                with self._router.knowing(answers):
                    return self._answer(request, now)
            except CallNeededError as needed:
                answers[needed.call.key] = await self.call(needed.call)
            except JournalError:
                # The runner ends with it.
                self.on_work()
                raise
        return Response(
            code=500, error=StoreError(500, "InternalError", "the request needs too many calls of webhooks")
        )

    async def continue_with(self, call: WebhookCall, work: Callable[[], object]) -> None:
        """Call a webhook, and others that the work needs then, and do the work with their answers."""
        answers = WebhookAnswers()
        for _ in range(_MOST_CALLS):
            answers[call.key] = await self.call(call)
            await self.idle()
            try:
                with self._router.knowing(answers):
                    work()
                return self.on_work()
            except CallNeededError as needed:
                call = needed.call

    @property
    def is_busy(self) -> bool:
        """Whether a request is answered off the event loop; nothing else may use the plane until it is `idle`."""
        return self._off_loop is not None

    async def idle(self) -> None:
        """Wait until no request is answered off the event loop; the plane may then be used until the next await."""
        while self._off_loop is not None:
            await asyncio.wait((self._off_loop,))

    def _takes_long(self, request: Request, size: int) -> bool:
        if request.verb not in _WRITES:
            return request.verb == "deletecollection" or (request.verb == "delete" and request.kind == DEFINITION)
        resource = self.resources.named(request.kind)
        stored = self.store.find(request.kind, request.key) if request.key and request.verb != "create" else None
        size += 0 if stored is None else len(stored.encoded)
        structural = self.resources.structural(resource)
        if resource.name in _COMPILED:
            size *= _COMPILED_FACTOR
        elif self._router.is_admitted(request):
            size += sum(len(policy.encoded) for kind in _POLICIES for policy in self.store.objects(kind))
        return (size if structural is None else unfolded_bytes(structural, size)) > _LONG_BYTES

    async def _answer_off_loop(self, request: Request, answers: WebhookAnswers, now: int) -> Response:
        self._begin(request, now)
        with self.store.waking_later(), self._router.knowing(answers):
            response = await asyncio.get_running_loop().run_in_executor(None, self._router.answer, request, now)
        return self._finish(request, response, now)

    def _end_off_loop(self, task: asyncio.Task[Response]) -> None:
        self._off_loop = None
        if not task.cancelled():
            # Mark the exception as retrieved: the caller may be gone.
            task.exception()

    def _begin(self, request: Request, now: int) -> None:
        if self._leases is not None:
            self._leases.on_request(request, now)
        if self.account is not None:
            self.account.on_request(request)

    def _finish(self, request: Request, response: Response, now: int) -> Response:
        if self.account is not None:
            self.account.on_response(request, response)
        if self._leases is not None:
            self._leases.on_response(request, response, now)
        if self.store.version != self._shown or self._live.has_arrived:
            self._publish(now)
            # The runner must be notified even if writes can no longer be persisted.
            self.on_work()
        # Simulated kubelets warn about annotations of the written object that they do not understand.
        checked = _CHECKED_ANNOTATIONS.get(request.kind)
        if checked is None or request.subresource or request.verb not in _WRITES or response.object is None:
            return response
        path, problems_of = checked
        annotations = value_at(response.object, *path, "metadata", "annotations")
        problems = problems_of(annotations) if annotations else {}
        found = [
            f"{'.'.join((*path, 'metadata'))}.annotations[{name}]: {problem}" for name, problem in problems.items()
        ]
        return msgspec.structs.replace(response, warnings=(*response.warnings, *found)) if found else response

    @property
    def is_kept(self) -> bool:
        """Whether all writes are on disk, if there is a journal."""
        return self._journal is None or not self._journal.has_unsynced

    def keep(self) -> None:
        """Return when all writes are on disk. Raises JournalError if they cannot be persisted."""
        if self._journal is not None and self._journal.has_unsynced:
            self._journal.sync()

    def checks(self) -> Mapping[str, str]:
        """Return the problem of each part of the plane by name; "" for none."""
        failures = self._live.failures
        journal = {} if self._journal is None else {"journal": self._journal.problem}
        return {**journal, **{name: failures.get(name, "") for name in self._components}}

    # Methods for the owner of the thread

    def turn(self, budget_ns: int | None = None) -> int | None:
        """Let components do what is due within about ``budget_ns``.

        Return the time of the next deadline, None for never.

        Raises JournalError if the writes cannot be persisted.
        """
        next_ns = self._live.turn(budget_ns)
        now = self._clock.now()
        self._collectors.collect(now)
        self._expiry.expire(now, _EXPIRED_AT_ONCE)
        if self._leases is not None:
            self._leases.work(now)
        are_types_left = self._required.check_types()
        self._publish(now)
        self.keep()
        if self.account is not None:
            self.account.flush(now)
        if self._live.has_arrived or are_types_left:
            return now
        leases_ns = None if self._leases is None else self._leases.next_time()
        return earliest((next_ns, self._collectors.next_time(), self._expiry.next_time(), leases_ns))

    def close(self) -> None:
        """Close the journal and the ledger; no requests may follow. Raises JournalError."""
        if self.account is not None:
            self.account.close(self._clock.now())
        if self._journal is not None:
            self._journal.close()

    # Faults and events outside the API

    def change_power(self, name: str, *, is_up: bool) -> None:
        """Stop a node's machine and everything on it, or start it again; only missing heartbeats show the stop."""
        self.store.get(_NODE, name)
        self._tell(self._power.change(name, self._clock.now(), is_up=is_up))
        self.on_work()

    def finish_pod(self, key: str) -> None:
        """Let the containers of the pod `namespace/name` exit with success. Raises StoreError 404."""
        pod = self.store.get(_POD, key).object
        if isinstance(pod, Pod) and KUBELET in self._components:
            exited = ContainersExited(pod.spec.node_name, pod.metadata.uid)
            self._live.enqueue(self._components[KUBELET], exited)
            self.on_work()

    def _tell(self, found: News) -> None:
        for name, news in found:
            if name in self._components:
                self._live.enqueue(self._components[name], news)

    # Actions and observations of components

    def send(self, requested: RequestedAction, now: int) -> None:
        """Carry out an action of a component."""
        if self.account is not None:
            self.account.on_action(requested.action, requested.component.name)
        self._with_answers(partial(self._send, requested, now))

    def _send(self, requested: RequestedAction, now: int) -> None:
        finished = self._carry_out(requested, now)
        if self.account is not None:
            self.account.on_result(requested.action, finished.problem)
        self._publish(now)
        self._live.answer(requested, finished)

    def _with_answers(self, work: Callable[[], Response | None]) -> Response | None:
        """Do work; if it needs the answers of webhooks, do it when they are there, and return None now."""
        try:
            with self._router.knowing(WebhookAnswers()):
                return work()
        except CallNeededError as needed:
            following = partial(self.continue_with, needed.call, work)
        try:
            task = asyncio.get_running_loop().create_task(following())
        except RuntimeError:
            # In virtual time nothing else happens meanwhile.
            asyncio.run(following())
        else:
            self._calling.add(task)
            task.add_done_callback(self._calling.discard)
        return None

    def _carry_out(self, requested: RequestedAction, now: int) -> ActionFinished:
        action = requested.action
        try:
            if isinstance(action, Record):
                self._record(action, self._name_of(requested), now)
                return ActionFinished(action)
            before = self._events.before(action)
            finished = actions.carry_out(self._router.answer, action, now)
            for record in self._events.events_of(finished, before):
                self._record(record, requested.component.name, now)
            return finished
        except StoreError as error:
            return ActionFinished(action, problem_of(error))
        except (PodiumError, CallNeededError):
            raise
        except Exception as error:
            # Answer like kube-apiserver after an internal error.
            _LOG.exception("the API server failed at a request of %s", requested.component.name)
            return ActionFinished(action, Problem(500, "InternalError", f"{type(error).__name__}: {error}"))

    def _record(self, record: Record, component: str, now: int) -> None:
        """Write an Event; a refusal, such as in a terminating namespace, is ignored."""

        def write(request: Request, at: int) -> Response:
            # What an Event reports must not be done again if a webhook is asked about the Event.
            return self._with_answers(partial(self._router.answer, request, at)) or Response(code=202)

        with suppress(StoreError):
            run_conversation(self._recorder.record(record, component, now), write, now)

    def _name_of(self, requested: RequestedAction) -> str:
        """Return the reporting component of an Event; a scheduler uses the name of its pod."""
        stored = self.store.find(_POD, requested.action.pod) if isinstance(requested.action, Record) else None
        if requested.component.waits and stored is not None and isinstance(stored.object, Pod):
            return stored.object.spec.scheduler_name
        return requested.component.name

    def _publish(self, now: int) -> None:
        """Show the writes to the components."""
        if self.store.version == self._shown:
            return
        version, self._shown = self._shown, self.store.version
        try:
            events = self.store.events_since(version)
        except StoreError:
            # More was written at once than the log holds.
            self._expiry = EventExpiry(self.store, now)
            self._required.observe_all()
            if self.account is not None:
                self.account.catch_up(now)
            for component in self._components.values():
                self._live.restart(component)
            return
        for event in events:
            kind = event.stored.resource.name
            if self.account is not None:
                self.account.observe(event, now)
            self._live.show(kind, observation_of(event), aspects_of(event, self.store))
            if kind == EVENT:
                self._expiry.observe(event, now)
            elif isinstance(node := event.stored.object, Node):
                self._tell(self._power.observe(node, now, is_gone=event.type == "DELETED"))
            else:
                self._required.observe(event)
        if self._required.work(now):
            self._publish(now)

    def _listed(self, watches: frozenset[str]) -> Iterator[Observation]:
        """Yield the first observations of a component that begins again."""
        for resource in self.resources.all():
            if is_watched_kind(resource.name, watches):
                yield from (first_seen(stored) for stored in self.store.objects(resource.name))

    def _on_failure(self, component: Component, error: Exception, restart_ns: int) -> None:
        wait_seconds = max(0, restart_ns - self._clock.now()) // 10**9
        _LOG.error("%s failed and restarts in %d s", component.name, wait_seconds, exc_info=error)


_AnnotationCheck = Callable[[Mapping[str, str]], Mapping[str, str]]
# By kind: the location of the annotations that configure simulated behavior, and the function that checks them.
_CHECKED_ANNOTATIONS: Mapping[str, tuple[tuple[str, ...], _AnnotationCheck]] = {
    "Node": ((), node_problems),
    **{kind: (path, pod_problems) for kind, path in POD_PATHS.items()},
}
_WRITES = ("create", "update", "patch")
# A webhook that changes with each answer what it is asked about must not be called for ever.
_MOST_CALLS = 100
# Writes of more bytes are answered off the event loop; those of expressions, which are compiled, count several times.
_LONG_BYTES = 32 * 1024
_POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
_COMPILED, _COMPILED_FACTOR = frozenset((*_POLICIES, DEFINITION)), 4


EVENT = "Event"
TTL_NS = 3600 * 10**9
MOST = 20_000
"""The maximum number of Events, which limits memory; the oldest are deleted first."""


class EventExpiry:
    """The expiry of Events. Those that exist at the start expire as if they were written then."""

    def __init__(self, store: Store, now: int) -> None:
        self._store = store
        # The time of the last write by key; the oldest first.
        self._written = {stored.key: now for stored in store.objects(EVENT)}

    def observe(self, event: WatchEvent, now: int) -> None:
        """Record that an Event was written or deleted."""
        exchange(self._written, event.stored.key, None if event.type == "DELETED" else now)

    def next_time(self) -> int | None:
        """Return the time of the next expiry, None if there are no Events."""
        if len(self._written) > MOST:
            return 0
        return next((written_ns + TTL_NS for written_ns in self._written.values()), None)

    def expire(self, now: int, most: int) -> None:
        """Delete at most ``most`` expired Events."""
        for _ in range(most):
            if (next_ns := self.next_time()) is None or next_ns > now:
                return
            key = next(iter(self._written))
            del self._written[key]
            if self._store.find(EVENT, key) is not None:
                self._store.delete(EVENT, key, now=now)


class CleanupControllers:
    """The garbage collector and the namespace controller of a store, as far as they are enabled.

    ``run`` carries out a step, after the calls of webhooks that it needs. A step that is refused, by a webhook or by a
    rule that was added meanwhile, is retried after a minute. The oldest ended pods beyond `MOST_ENDED` are deleted, too
    (pkg/controller/podgc).
    """

    def __init__(self, store: Store, ask: Answer, run: Callable[..., object], settings: ControlPlaneSettings) -> None:
        self._store, self._run = store, run
        self._request = actions.cleanup_by_requests(ask)
        self._controllers: list[GarbageCollector | NamespaceCleaner] = []
        if GARBAGE_COLLECTOR not in settings.without:
            self._controllers.append(GarbageCollector(store, self._carry_out, absent_is_gone=settings.absent_is_gone))
        if NAMESPACE_CONTROLLER not in settings.without:
            self._controllers.append(NamespaceCleaner(store, self._carry_out))
        # The version up to which all garbage was collected.
        self._collected = -1
        # The retries: of objects by uid, and of namespaces by name.
        self._retries: Deadlines[str] = Deadlines()
        self.next_time = self._retries.next_time
        # When deleted definitions lose their objects, by uid.
        self._definitions: dict[str, int] = {}
        self._limits_ended = POD_COLLECTOR not in settings.without
        self._next_count_ns = 0

    def collect(self, now: int) -> None:
        """Process the writes since the last call, and the retries that are due."""
        while (key := self._retries.take_due(now)) is not None:
            self._collected = -1
            for controller in self._controllers:
                controller.look_again(key)
        while self._store.version != self._collected:
            self._collected = self._store.version
            for controller in self._controllers:
                controller.collect(now)
            if self._limits_ended and self._store.count() > MOST_ENDED and now >= self._next_count_ns:
                self._delete_surplus(now)

    def _delete_surplus(self, now: int) -> None:
        self._next_count_ns = now + _COUNTED_EACH_NS
        ended = [one for one in self._store.objects("Pod") if isinstance(one.object, Pod) and one.object.is_terminal]
        ended.sort(key=lambda one: (one.object.metadata.creation_timestamp or "", one.key))
        for stored in ended[: max(0, len(ended) - MOST_ENDED)]:
            self._carry_out(DeleteStep(stored), now)

    def _carry_out(self, step: Step, now: int) -> None:
        if step.stored.kind == DEFINITION:
            due_ns = self._definitions.setdefault(step.stored.uid, now + _CUSTOM_OBJECTS_NS)
            if now < due_ns:
                self._retries.set(step.stored.uid, due_ns)
                return
            del self._definitions[step.stored.uid]
        self._run(partial(self._attempt, step, now))

    def _attempt(self, step: Step, now: int) -> None:
        try:
            self._request(step, now)
        except StoreError as error:
            stored = step.stored
            for key in (stored.uid, stored.object.metadata.namespace or stored.key):
                self._retries.set(key, now + _TRIED_AGAIN_NS)
            _LOG.warning("garbage collection of %s %s was refused: %s", stored.kind, stored.key, error.message)


class ControlPlaneRunner:
    """A runner of a control plane at the pace of a clock, while `run` is awaited.

    ``problem`` is the current problem, "" for none.
    """

    def __init__(self, plane: EmbeddedControlPlane, pace: Clock) -> None:
        self._plane = plane
        self._pace = pace
        self._work = asyncio.Event()
        self.problem = ""
        plane.on_work = self._work.set

    async def run(self) -> None:
        """Run until cancelled. Raises JournalError if writes cannot be persisted."""
        loop = asyncio.get_running_loop()
        budget_ns = int(_SLICE_NS * self._pace.speed)
        while True:
            self._work.clear()
            await self._plane.idle()
            next_ns = self._turn(budget_ns)
            seconds = None if next_ns is None else self._pace.seconds_until(next_ns)
            if seconds is None:
                await self._work.wait()
            elif seconds > 0:
                timer = loop.call_later(seconds, self._work.set)
                await self._work.wait()
                timer.cancel()
            else:
                await asyncio.sleep(0)

    def _turn(self, budget_ns: int) -> int | None:
        """Run a turn of the plane; after an unexpected error, schedule another one later."""
        try:
            next_ns = self._plane.turn(budget_ns)
        except PodiumError:
            raise
        except Exception as error:
            _LOG.exception("the control plane failed and continues in %d s", _PAUSE_NS // 10**9)
            self.problem = f"{type(error).__name__}: {error}"
            return self._plane.now() + int(_PAUSE_NS * self._pace.speed)
        self.problem = ""
        return next_ns
