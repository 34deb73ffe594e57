"""The control plane of `podium up`: made from the options, served, and ended; and what its data directory keeps.

A control plane is upgraded by one minor version at a time and not downgraded, as Kubernetes supports it; patch levels
may change in both directions. Source: the version skew policy (kubernetes.io/releases/version-skew-policy).
"""

from __future__ import annotations

import logging
import secrets
import shlex
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
import msgspec

from podium.api import clock_inference, collector, meta
from podium.api.errors import InputError, Validation, escape, locating, os_error_as, shown
from podium.api.input.codec import Document, Input, objects_in, only_one
from podium.api.input.documents import API_VERSION, is_snapshot, refuse_empty_pods
from podium.api.input.files import read_bytes
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice
from podium.api.versions.gates import stages
from podium.api.versions.release import Release, read_gates, read_version, shown_gates
from podium.apirequests.context import RequestRules
from podium.app.console import cells, options, output, reading
from podium.app.serving.page.answering import Answering
from podium.app.serving.page.live_page import PREFIX, LivePage
from podium.app.serving.page.watching import StoreWatching, of_plane
from podium.app.serving.serving import Serving, ServingAddress, check_place
from podium.controllers.kubelets.host import KubeletSettings
from podium.controlplane import assembly
from podium.controlplane.component_names import GARBAGE_COLLECTOR
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import EmbeddedControlPlane
from podium.controlplane.ledger_file import KEPT_SECONDS, LEDGER, LedgerFile
from podium.framework.extenders import without_extenders
from podium.framework.rescheduling.settings import ReschedulerSettings
from podium.framework.settings.configuration import load_configuration
from podium.framework.settings.registry import refusing_new_classes
from podium.runtime.clock import SystemClock
from podium.server.http import server as http_server
from podium.server.http.security import TLS, is_loopback, read_token
from podium.sim.recording.tape import is_recording
from podium.sim.scenario.scenario import Autoscaling, read_autoscaling
from podium.store.durable_journal import DurableJournal, JournalInUseError

_KUBECONFIG = "podium.kubeconfig"
VERSION_FILE = "version"
"""The name of the file with the version: the version, and the feature gates that are set, if any, after a space."""

_KEY_BYTES = 32

_LONGEST = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of the command."""

    source: options.Source = options.Source()  # noqa: RUF009 - an immutable value
    validation: Validation | None = None
    nodes: int = 0
    node_template: str | None = None
    data_dir: str | None = None
    speed: float = 1.0
    seed: int | None = None
    start_delay_ns: int = 0
    termination_ns: int | None = None
    config: str | None = None
    ignore_extenders: bool = False
    release: ReleaseChoice = CLUSTER_RELEASE
    autoscaler: str | None = None
    priority_cutoff: int | None = None
    rescheduler: str | None = None
    evicts_on_delete: bool = False
    host: str = "127.0.0.1"
    port: int | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    client_ca: str | None = None
    token_file: str | None = None
    authorization: str = "none"
    audit_log: str | None = None
    write_kubeconfig: str | None = None
    has_page: bool = True
    accepts_loss: bool = False
    has_ledger: bool = True
    ledger_age_ns: int = KEPT_SECONDS * 10**9
    without: frozenset[str] = frozenset()
    command: tuple[str, ...] = ()


def run(wanted: UpOptions) -> int:
    """Serve a control plane until a signal or its command ends it; return the exit code. Raises PodiumError."""
    place = place_of(wanted)
    settings = settings_of(wanted)
    with _kubeconfig_path(wanted) as path, _audit_log(wanted) as audit:
        check_place(path)
        place = replace(place, audit=audit)
        with collector.collector_paused():
            clock, found, settings = assembled(wanted, settings)
        logging.basicConfig(level=logging.WARNING, format="podium: %(levelname)s: %(name)s: %(message)s")
        collector.settle_collector()
        for kind, count in found.population.left_out.items():
            _warn(f"{count} of {kind} {cells.agreeing(count, 'is')} left out: the kind is not served")
        serving = Serving(
            found.plane,
            clock,
            place,
            path,
            wanted.command,
            lambda server: None if wanted.command else _announce(server, path, found, has_page=wanted.has_page),
            _page(found.plane, settings, wanted.speed) if wanted.has_page else None,
        )
        with refusing_new_classes():
            return http_server.run(serving.run())


def _page(plane: EmbeddedControlPlane, settings: ControlPlaneSettings, speed: float) -> LivePage:
    return LivePage(lambda: of_plane(plane, settings, speed), StoreWatching(plane.store, plane.idle), Answering())


def settings_of(wanted: UpOptions) -> ControlPlaneSettings:
    """Return the settings of the control plane. Raises PodiumError."""
    configuration = load_configuration(wanted.config) if wanted.config else None
    for caveat in without_extenders(configuration, ignore=wanted.ignore_extenders):
        _warn(caveat.message)
    if wanted.autoscaler is None and wanted.priority_cutoff is not None:
        raise InputError("a priority cut-off needs an autoscaler (--autoscaler FILE)")
    autoscaling = None
    if wanted.autoscaler is not None:
        # Imported only if needed: it imports the reader of scenarios.
        autoscaling = read_autoscaler(wanted.autoscaler, wanted.priority_cutoff)
    return ControlPlaneSettings(
        seed=secrets.randbits(32) if wanted.seed is None else wanted.seed,
        configuration=configuration,
        release=wanted.release.of(),
        kubelets=KubeletSettings(start_delay_ns=wanted.start_delay_ns, termination_ns=wanted.termination_ns),
        autoscaling=autoscaling,
        rescheduling=None if wanted.rescheduler is None else _rescheduling(wanted.rescheduler),
        without=wanted.without,
        rules=RequestRules(deletes_by_eviction=wanted.evicts_on_delete, token_key=secrets.token_bytes(32)),
        authorizes_by_roles=wanted.authorization == "rbac",
        authority=_certificates(wanted.tls_cert),
        client_authority=_certificates(wanted.client_ca),
    )


def _certificates(path: str | None) -> str:
    """Return the certificates in a file; "" for no file. Raises InputError."""
    return "" if path is None else read_bytes(path).decode("utf-8", "replace")


def _rescheduling(path: str) -> ReschedulerSettings:
    """Return the settings of the rescheduler in a file, and warn about those that are not supported."""
    # Imported only if needed.
    from podium.controllers.rescheduling.planning import check_policies
    from podium.framework.rescheduling.configuration import load_rescheduler

    found = load_rescheduler(path)
    for caveat in found.caveats:
        _warn(caveat.message)
    with locating(source=path):
        check_policies(found.settings)
    return found.settings


def place_of(wanted: UpOptions) -> ServingAddress:
    """Return where to listen. A server that needs credentials gets a new token, for the kubeconfig, if it has none."""
    if (wanted.tls_cert is None) is not (wanted.tls_key is None):
        raise InputError("a certificate needs its key: give --tls-cert and --tls-key, or neither")
    tls = None
    if wanted.tls_cert is not None and wanted.tls_key is not None:
        tls = TLS(
            certificate_file=wanted.tls_cert, key_file=wanted.tls_key, client_authority_file=wanted.client_ca or ""
        )
    elif wanted.client_ca is not None:
        raise InputError("clients' certificates need TLS: give --tls-cert and --tls-key")
    token = "" if wanted.token_file is None else read_token(wanted.token_file)
    if not token and tls is not None and (wanted.client_ca or not is_loopback(wanted.host)):
        token = secrets.token_urlsafe(32)
    return ServingAddress(host=wanted.host, port=wanted.port, tls=tls, token=token)


def assembled(
    wanted: UpOptions, settings: ControlPlaneSettings
) -> tuple[SystemClock, assembly.Assembled, ControlPlaneSettings]:
    """Return the clock, the control plane, and its settings with the version of the objects. Raises PodiumError."""
    has_source = bool(wanted.source.files or wanted.source.cluster)
    found = reading.read_shown(wanted.source, wanted.validation) if has_source else Input([])
    refuse_empty_pods(found.documents)
    release, _ = wanted.release.for_documents(found.documents)
    for warning in found.warnings:
        _warn(str(warning))
    for snapshot in found.snapshots:
        for hidden in snapshot.hidden:
            _warn(f"{hidden.kind} ({hidden.api_version}) could not be read {snapshot.origin}: there are none")
    template = assembly.DEFAULT_TEMPLATE
    if wanted.node_template is not None:
        template = assembly.check_template(read_one(wanted.node_template, "Node"), wanted.node_template)
    journal = None if wanted.data_dir is None else _journal(Path(wanted.data_dir), accept_loss=wanted.accepts_loss)
    ledger: LedgerFile | None = None
    try:
        if wanted.data_dir is not None:
            release = release_of(Path(wanted.data_dir), wanted.release, release, _warn)
            settings = replace(settings, rules=replace(settings.rules, token_key=token_key_of(Path(wanted.data_dir))))
        settings = replace(settings, release=release)
        if wanted.data_dir is not None and wanted.has_ledger:
            path = str(Path(wanted.data_dir) / LEDGER)
            ledger = LedgerFile(path, _on_ledger_problem, kept_seconds=wanted.ledger_age_ns / 10**9)
        store = assembly.open_store(settings.seed, journal)
        store.keeps_custom_objects = GARBAGE_COLLECTOR not in settings.without
        # The clock starts no earlier than the newest object, since the cluster may have had a faster clock.
        objects = assembly.all_objects(store)
        clock = SystemClock(wanted.speed, clock_inference.newest_time(objects) if store.version else 0)
        beginning = assembly.InitialContent(_served(found.documents), wanted.nodes, template)
        return clock, assembly.assemble(store, clock, settings, beginning, journal, ledger), settings
    except BaseException:
        if ledger is not None:
            ledger.close()
        if journal is not None:
            journal.close()
        raise


def release_of(directory: Path, chosen: ReleaseChoice, found: Release, report: Callable[[str], None]) -> Release:
    """Return the version for a data directory, and store it there.

    A new directory gets the version that was ``found``. Otherwise, the directory's own counts, with its gates, unless
    others are ``chosen``; gates that the chosen version does not know are reported. Raises InputError for a version
    that the data cannot change to.
    """
    file, release = directory / VERSION_FILE, found
    try:
        version, _, gates = file.read_text(encoding="utf-8").strip().partition(" ")
        kept = read_version(version).with_gates(dict(read_gates(gates)))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the version of the data cannot be read: {error}", source=str(file)) from None
    except InputError as error:
        raise error.located(source=str(file)) from None
    else:
        release = _upgraded(kept, chosen, directory, report)
    text = " ".join(filter(None, (str(release), shown_gates(release.gates))))
    with os_error_as("the version cannot be kept", str(file)):
        output.write_private(file, f"{text}\n")
    return release


def token_key_of(directory: Path) -> bytes:
    """Return the key that signs the tokens of a data directory, which is made at its first use. Raises InputError."""
    file = directory / "token-key"
    try:
        if not file.exists():
            output.write_private(file, f"{secrets.token_hex(_KEY_BYTES)}\n")
        key = bytes.fromhex(file.read_text(encoding="ascii"))
        if len(key) != _KEY_BYTES:
            raise ValueError(f"it has {len(key)} bytes and not {_KEY_BYTES}")
    except (OSError, ValueError) as error:
        problem = f"the key of tokens cannot be used: {error}; delete the file to get a new one"
        raise InputError(problem, source=str(file)) from None
    return key


def _upgraded(kept: Release, chosen: ReleaseChoice, directory: Path, report: Callable[[str], None]) -> Release:
    wanted_release = read_version(chosen.version) if chosen.version else Release(kept.minor, kept.patch)
    if wanted_release.minor not in (kept.minor, kept.minor + 1):
        problem = f"the data is of Kubernetes {kept}, and cannot be used with {wanted_release}: "
        if wanted_release.minor < kept.minor:
            problem += "a cluster cannot be downgraded to another minor version"
        else:
            problem += f"upgrade by one minor version at a time, next to 1.{kept.minor + 1}"
        raise InputError(problem, source=str(directory))
    if wanted_release.minor != kept.minor:
        report(f"{directory}: the cluster is upgraded from Kubernetes {kept} to {wanted_release}")
    if chosen.gates:
        return wanted_release.with_gates(dict(chosen.gates))
    known = stages(wanted_release.minor, wanted_release.patch)
    gates = {name: value for name, value in kept.gates if name in known or name.startswith("All")}
    lost = [name for name, _ in kept.gates if name not in gates]
    if lost:
        report(f"{directory}: {wanted_release} does not know the feature gates {', '.join(lost)}: they are left out")
    return wanted_release.with_gates(gates)


def _on_ledger_problem(problem: str) -> None:
    """Log a problem of the ledger, which stays in memory until it can be written again."""
    if problem:
        logging.getLogger(__name__).error("cannot write the ledger: %s", problem)
    else:
        logging.getLogger(__name__).warning("writing the ledger again")


def _journal(directory: Path, *, accept_loss: bool) -> DurableJournal:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        problem = "is not a directory, and cannot be created: name another one with --data-dir"
        raise InputError(problem, source=str(directory)) from None
    try:
        return DurableJournal(str(directory / "journal"), accept_loss=accept_loss)
    except JournalInUseError:
        problem = "another podium up uses this data directory: end that one first, or name another with --data-dir"
        raise InputError(problem, source=str(directory)) from None


def _served(documents: list[Document]) -> list[Document]:
    """Return the objects to serve, without a Scenario and descriptions of other objects; warn about a Scenario."""
    found = []
    for document in documents:
        is_known = document.object is not None
        if not is_known and document.raw.get("kind") == "Scenario":
            _warn(f"{document.source}: the Scenario is left out; `podium simulate` plays it")
        elif is_known or not (is_snapshot(document.raw) or is_recording(document.raw)):
            found.append(document)
    return found


@contextmanager
def _audit_log(wanted: UpOptions) -> Iterator[Callable[[bytes], None] | None]:
    """Yield the function that appends to the audit log, which only its owner can read; None without one."""
    if wanted.audit_log is None:
        yield None
        return
    path = Path(wanted.audit_log)
    with os_error_as("the audit log cannot be written", wanted.audit_log):
        path.touch(mode=0o600)
        file = path.open("ab", buffering=0)

    def write(line: bytes) -> None:
        try:
            file.write(line + b"\n")
        except OSError as error:
            # The request was carried out; the error says that the log is incomplete.
            logging.getLogger(__name__).error("a request is not in the audit log: %s", error.strerror)

    with file:
        yield write


@contextmanager
def _kubeconfig_path(wanted: UpOptions) -> Iterator[Path]:
    """Yield the path of the kubeconfig, which is temporary for a command unless a path was given."""
    if wanted.write_kubeconfig is not None:
        yield Path(wanted.write_kubeconfig)
    elif wanted.command:
        with tempfile.TemporaryDirectory(prefix="podium-") as directory:
            yield Path(directory) / _KUBECONFIG
    else:
        yield Path(wanted.data_dir or ".") / _KUBECONFIG


def _announce(server: str, path: Path, assembled: assembly.Assembled, *, has_page: bool) -> None:
    what = cells.counted(len(assembled.plane.store.objects("Node")), "node")
    click.echo(f"Kubernetes {assembled.plane.release}, simulated by Podium, with {what}: {server}")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(path.absolute()))}")
    if has_page:
        click.echo(f"  in a browser: {server}{PREFIX}")
    click.echo("Ctrl-C ends it.")


def _warn(message: str) -> None:
    click.echo(f"podium: warning: {escape(message, _LONGEST)}", err=True)


def read_autoscaler(path: str, priority_cutoff: int | None) -> Autoscaling:
    """Return the autoscaler in a file: an Autoscaler, or a Scenario with one. Raises InputError.

    ``priority_cutoff`` replaces the file's own.
    """
    with locating(source=path):
        groups, settings = _autoscaling(read_one(path, "Autoscaler"))
    if priority_cutoff is not None:
        settings = msgspec.structs.replace(settings, priority_cutoff=priority_cutoff)
    return groups, settings


def _autoscaling(raw: meta.Raw) -> Autoscaling:
    if raw.get("apiVersion") != API_VERSION:
        raise InputError(f"{shown(raw.get('apiVersion'))} is not {API_VERSION}", path=".apiVersion")
    paths = {"Autoscaler": ("spec",), "Scenario": ("spec", "autoscaler")}
    if raw.get("kind") not in paths:
        raise InputError(f"{shown(raw.get('kind'))} is neither Autoscaler nor Scenario", path=".kind")
    path = ""
    for name in paths[raw["kind"]]:
        path += f".{name}"
        if name not in raw:
            raise InputError("is missing, and must be given", path=path)
        raw = raw[name]
        if not isinstance(raw, dict):
            raise InputError(f"{shown(raw)} is not an object", path=path)
    return read_autoscaling(raw, path)


def read_one(path: str, kind: str) -> meta.Raw:
    """Return the only object in a file of YAML or JSON, without nulls. Raises InputError."""
    return only_one(objects_in(read_bytes(path), path), kind, path)
