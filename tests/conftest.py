"""Fixtures of all tests: hypothesis profiles, and the path of the production trace."""

import functools
import gc
import os
import signal
import sys
import typing
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]

# Containers often turn off compiled modules. Tests start many processes, which would each compile all modules again,
# and pytest would rewrite the asserts of hypothesis each time.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / ".pytest_cache" / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

import pytest  # noqa: E402 - what is imported from here on is compiled once
from hypothesis import HealthCheck, settings  # noqa: E402

from podium.framework.cache import class_cache  # noqa: E402
from tests.fuzzing import FAULT_HOURS, usual  # noqa: E402

OPENB = Path(__file__).parents[2] / "shared" / "data" / "openb"

# Whether a test passes must not depend on the machine's speed: neither its run nor its draws have a deadline.
_SLOW = [HealthCheck.too_slow]
settings.register_profile("local", deadline=None, suppress_health_check=_SLOW, print_blob=True, max_examples=usual(100))
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if "CI" in os.environ else "local")

# Before Python 3.12, `isinstance(plugin, Protocol)` collects the members of the protocol each time. That is two thirds
# of the time in which a small cluster gets its plugins, and tests make many thousand such clusters.
if sys.version_info < (3, 12):
    for _name in ("_get_protocol_attrs", "_is_callable_members_only"):
        vars(typing)[_name] = functools.cache(vars(typing)[_name])

# A shell starts background jobs with SIGINT ignored, and the processes of tests would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests make many objects and few cycles. It is not the threshold of Podium's programs, at which they ignore objects.
gc.set_threshold(20_000)

# A debug mode for any test: each cached value that is used is compared with a recomputed one.
class_cache.VERIFIES = "PODIUM_VERIFY_CACHES" in os.environ

# Many times as long as the slowest test takes: a test that hangs must not stop all others.
_HANG_SECONDS = 900

_FREEZE = gc.freeze


def _fail_a_test_that_hangs(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"the test has not ended after {_HANG_SECONDS} seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Fail a test that hangs, with the stack where it does; restore the garbage collector that all tests share.

    A hook takes a tenth of a fixture's time, and there are thousands of tests.
    """
    threshold, before = gc.get_threshold(), signal.signal(signal.SIGALRM, _fail_a_test_that_hangs)
    signal.alarm(_HANG_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        # A test that runs a program changes them.
        if gc.get_threshold() != threshold:
            gc.set_threshold(*threshold)
        gc.enable()


def pytest_collection(session: pytest.Session) -> None:
    """Let every other worker import the test modules from the last one on, so that two of them compile each one once.

    In a fresh clone compiling them all takes ten seconds. The order of the tests stays the same.
    """
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if int(name.removeprefix("gw")) % 2 and session.config.args == session.config.getini("testpaths"):
        for file in sorted(ROOT.glob("tests/**/test_*.py"), reverse=True):
            # Collecting it reports its failure.
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Let the collector ignore objects between modules alone.

    A program makes it ignore all objects at its start. In this process that would be the garbage of earlier tests, too.
    """
    _ignore_existing_objects()
    vars(gc)["freeze"] = lambda: None


def _ignore_existing_objects() -> None:
    """Free all garbage, then make the collector ignore what there is.

    Thousands of collected tests stay until the end. A program that frees its cycles would examine them all each time.
    """
    gc.collect()
    _FREEZE()


@pytest.fixture
def programs_freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let programs make the collector ignore objects, as they do in a process of their own."""
    monkeypatch.setitem(vars(gc), "freeze", _FREEZE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return how many workers `-n auto` starts: one more for every five cores, as tests wait a sixth of the time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + -(-cores // 5)


def pytest_sessionfinish() -> None:
    """Let the last collection examine all objects, so that pytest reports resources that were not closed."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _leaves_what_is_shared_as_it_was() -> Iterator[None]:
    """Fail a test that changed an object of other tests, which would then depend on their order; free its garbage."""
    # No test runs between the end of a module and the start of the next.
    before = _last_shared.copy() or _shared()
    yield
    _ignore_existing_objects()
    after = _shared()
    _last_shared.update(after)
    assert [name for name, text in before.items() if after[name] != text] == []


_last_shared: dict[str, str] = {}


def _shared() -> dict[str, str]:
    """By its name, each constant of the tests' helpers that could be changed, and the limit of recursion."""
    modules = [(name, module) for name, module in sys.modules.items() if name.startswith("tests.")]
    # Many are imported by several modules: each has the name that it got first.
    constants = {
        id(value): (f"{module_name}.{name}", value)
        for module_name, module in reversed(modules)
        if not module_name.rpartition(".")[2].startswith("test_")
        for name, value in vars(module).items()
        if name.lstrip("_").isupper() and isinstance(value, dict | list | set)
    }
    texts = {name: repr(value) for name, value in constants.values()}
    return {"sys.getrecursionlimit()": str(sys.getrecursionlimit())} | texts


@pytest.fixture(scope="session")
def openb() -> Path:
    """Provide the folder of the openb trace (nodes.csv, pods.csv), which lies beside the project, not in it."""
    if not OPENB.is_dir():
        pytest.skip("the openb trace is not beside the project: ../shared/data/openb is missing")
    return OPENB


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell for how long all runs together were played under faults."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    calls = [report for report in reports if isinstance(report, pytest.TestReport) and report.when == "call"]
    hours = sum(float(str(value)) for call in calls for name, value in call.user_properties if name == FAULT_HOURS)
    if hours:
        terminalreporter.write_line(f"{hours:,.0f} {FAULT_HOURS}")
