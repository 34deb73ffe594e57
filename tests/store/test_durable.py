"""The journal file: the contents of a store after a crash at any point."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.store.api_resources import APIResource
from podium.store.durable_journal import DurableJournal, JournalError, JournalInUseError
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.fuzzing import usual
from tests.pod_statuses import set_pod_status
from tests.store.lives import Life, reopened, state
from tests.store.objects import node, pod, quota, serving
from tests.store.refusals import answer, everything, refusal

_SHARED_MEMORY = "/dev/shm"
_NEEDED_BYTES = 1 << 27
HAS_MEMORY = os.access(_SHARED_MEMORY, os.W_OK) and shutil.disk_usage(_SHARED_MEMORY).free > _NEEDED_BYTES
MEMORY = _SHARED_MEMORY if HAS_MEMORY else None
"""The folder of temporary folders; None for the usual one."""


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Provide a folder in memory if the system has one: these tests wait for a disk ten times as long as they take."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    folder = tmp_path / "life"
    folder.mkdir()
    one = Life(folder)
    yield one
    one.journal.close()


def test_a_store_begins_where_it_was_left(life: Life) -> None:
    life.store.create(node("n1", zone="a"), now=0)
    life.store.create(pod("web", annotations={"note": "☸ \x1b"}), now=0)
    life.store.bind("default/web", "n1", now=0)
    life.store.create(pod("gone"), now=0)
    life.store.delete("Pod", "default/gone", now=0)
    life.journal.close()

    store, journal = reopened(life.path)

    assert everything(store) == everything(life.store)
    assert store.events_since(0) == life.store.events_since(0)
    # The next writes are those that the first store would have made.
    assert store.create(pod("next"), now=0) == twin().create(pod("next"), now=0)
    journal.close()


def test_a_new_journal_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    journal = DurableJournal(str(folder / "journal"))
    Store(journal=journal).create(pod("web"), now=0)
    journal.sync()

    assert {file.name: file.stat().st_mode & 0o077 for file in folder.iterdir()} == dict.fromkeys(
        ("journal", "journal-acknowledged", "journal-wal"), 0
    )
    journal.close()


def twin() -> Store:
    """Return a store in which the same happened, and that never ended."""
    store = Store()
    store.create(node("n1", zone="a"), now=0)
    store.create(pod("web", annotations={"note": "☸ \x1b"}), now=0)
    store.bind("default/web", "n1", now=0)
    store.create(pod("gone"), now=0)
    store.delete("Pod", "default/gone", now=0)
    return store


def test_a_watch_goes_on_after_a_restart(life: Life) -> None:
    version = life.store.create(pod("web"), now=0).version
    life.store.bind("default/web", "n1", now=0)
    life.journal.close()

    store, journal = reopened(life.path)

    assert [event.version for event in store.events_since(version)] == [2]
    assert store.events_since(version)[0].previous == life.store.events_since(0)[0].stored
    journal.close()


def write(store: Store, number: int) -> None:
    """One of some writes of all sorts; what does not go is refused."""
    name = f"p{number % 3}"
    try:
        match number % 7:
            case 0 | 1:
                store.create(pod(name), now=number)
            case 2:
                set_pod_status(store, f"default/{name}", {"message": str(number)}, [], now=number)
            case 3:
                store.bind(f"default/{name}", f"n{number}", now=number)
            case 4:
                store.delete("Pod", f"default/{name}", now=number, grace_seconds=0)
            case 5:
                store.patch("ResourceQuota", "default/all", {"spec": {"hard": {"pods": number}}}, "merge")
            case _:
                with store.transaction():
                    store.create({**pod(""), "metadata": {"generateName": "web-"}}, now=number)
                    store.create({**pod(""), "metadata": {"generateName": "web-"}}, now=number)
    except StoreError:
        pass


def test_a15_after_a_crash_at_any_point_the_store_is_a_beginning_with_all_that_was_acknowledged(
    life: Life, tmp_path: Path
) -> None:
    life.store.create(quota("all", {"pods": 9}), now=0)
    life.note()
    for number in range(40):
        write(life.store, number)
        life.note()
        life.check(life.crashed(tmp_path / f"before-{number}"), life.acknowledged)
        if number % 3 == 0:
            life.sync()
            found = life.check(life.crashed(tmp_path / f"after-{number}"), life.acknowledged)
            assert found == life.store.version
        if number == 20:
            life.journal.compact(keep=4)
            life.acknowledged = life.store.version


def test_a15_a_truncated_log_is_reported_and_its_rest_is_a_prefix(life: Life, tmp_path: Path) -> None:
    for number in range(12):
        write(life.store, number)
        life.note()
        life.sync()
    path = life.crashed(tmp_path / "torn")
    log = path.with_name("journal-wal")
    whole = log.read_bytes()
    versions = set()
    for end in range(0, len(whole) - len(whole) // 40, len(whole) // 40):
        copied = tmp_path / f"torn-{end}"
        shutil.copytree(path.parent, copied)
        (copied / "journal-wal").write_bytes(whole[:end])
        with pytest.raises(JournalError, match=rf"acknowledged ends at version {life.acknowledged}.*lost or cut"):
            DurableJournal(str(copied / "journal"))
        versions.add(life.check(copied / "journal", 0, accept_loss=True))

    assert len(versions) > 3


def test_a_lost_log_is_reported_even_if_the_file_looks_new(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("web"), now=0)
    life.note()
    life.sync()
    path = life.crashed(tmp_path / "lost")
    path.with_name("journal-wal").unlink()

    with pytest.raises(JournalError, match="acknowledged ends at version 1, but the file at 0"):
        DurableJournal(str(path))
    assert life.check(path, 0, accept_loss=True) == 0


def test_a_journal_in_use_is_not_taken_without_what_belongs_to_it(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("web"), now=0)
    life.note()
    life.sync()
    path = life.crashed(tmp_path / "alone")
    witness = path.with_name("journal-acknowledged")
    whole = witness.read_bytes()

    for damaged in (None, b"", bytes(len(whole))):
        witness.unlink(missing_ok=True)
        if damaged is not None:
            witness.write_bytes(damaged)
        with pytest.raises(JournalError, match=r"journal-acknowledged, which belongs to it, is missing or damaged"):
            DurableJournal(str(path))

    assert life.check(path, 1, accept_loss=True) == 1


def test_a_journal_that_lost_all_files_beside_it_is_not_an_empty_one(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("web"), now=0)
    life.note()
    life.sync()
    path = life.crashed(tmp_path / "bare")
    for name in ("journal-wal", "journal-shm", "journal-acknowledged"):
        path.with_name(name).unlink(missing_ok=True)

    with pytest.raises(JournalError, match=r"was not closed.*--accept-loss"):
        DurableJournal(str(path))
    assert life.check(path, 0, accept_loss=True) == 0


def test_a_database_without_content_is_not_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("DROP TABLE t")
        connection.execute("PRAGMA schema_version = 0")

    with pytest.raises(JournalError, match=r"holds nothing.*--accept-loss"):
        DurableJournal(str(path))


def test_a_closed_journal_is_one_file(life: Life) -> None:
    life.store.create(pod("web"), now=0)
    life.note()
    life.journal.close()

    assert [file.name for file in life.path.parent.iterdir()] == ["journal"]
    assert life.check(life.path, 1) == 1


@pytest.mark.parametrize("compacted", [False, True])
def test_a_flipped_bit_is_reported_or_has_no_effect(life: Life, tmp_path: Path, compacted: bool) -> None:
    for number in range(20):
        write(life.store, number)
    life.note()
    if compacted:
        life.journal.compact(keep=3)
    life.journal.close()
    whole, report = life.path.read_bytes(), list[str]()
    flipped = tmp_path / "flipped"
    for index in range(150):
        # A step that is prime to the size comes by everywhere in the end.
        bit = index * 40_009 % (8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        flipped.write_bytes(damaged)
        try:
            assert life.check(flipped, life.store.version) == life.store.version
        except JournalError as error:
            report.append(str(error))
        flipped.with_name("flipped-wal").unlink(missing_ok=True)
        flipped.with_name("flipped-acknowledged").unlink(missing_ok=True)

    assert len(report) > 20
    assert all(str(tmp_path) in problem for problem in report)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DELETE FROM events WHERE version = 2", "version 2 is missing"),
        ("DELETE FROM events WHERE version = (SELECT max(version) FROM events)", "versions after .* are missing"),
        ("UPDATE events SET object = object || ' ' WHERE version = 3", "version 3 is not what was written"),
        ("UPDATE events SET type = 'DELETED' WHERE version = 2", "version 2 is not what was written"),
        ("DELETE FROM given_uids", "uids is not what was written"),
        ("UPDATE state SET identities = 0", "its state is not what was written"),
        ("UPDATE state SET identities = NULL", "its state is not what was written"),
        ("DELETE FROM state", "0 states instead of one"),
    ],
)
def test_a_foreign_change_of_the_journal_is_reported(life: Life, change: str, problem: str) -> None:
    life.store.create(pod("given", metadata={"uid": "u1"}), now=0)
    for number in range(20):
        write(life.store, number)
    life.journal.close()
    changed(life.path, change)

    with pytest.raises(JournalError, match=problem):
        reopened(life.path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DELETE FROM objects WHERE key = 'default/p1'", "objects are missing"),
        (
            "UPDATE objects SET object = replace(object, 'p1', 'p9') WHERE key = 'default/p1'",
            "Pod default/p1 is not what",
        ),
    ],
)
def test_a_change_of_compacted_objects_is_reported(life: Life, change: str, problem: str) -> None:
    for name in ("p0", "p1", "p2"):
        life.store.create(pod(name), now=0)
    life.journal.compact(keep=0)
    life.journal.close()
    changed(life.path, change)

    with pytest.raises(JournalError, match=problem):
        reopened(life.path)


def changed(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


def test_an_older_copy_beside_a_newer_witness_is_reported(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("a"), now=0)
    life.sync()
    older = life.crashed(tmp_path / "older")
    life.store.create(pod("b"), now=0)
    life.sync()
    newer = life.crashed(tmp_path / "newer")
    shutil.copy(newer.with_name("journal-acknowledged"), older.with_name("journal-acknowledged"))

    with pytest.raises(JournalError, match="acknowledged ends at version 2, but the file at 1"):
        DurableJournal(str(older))


def test_another_history_beside_a_witness_is_reported(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("a"), now=0)
    life.sync()
    one = life.crashed(tmp_path / "one")
    (tmp_path / "other").mkdir()
    other = Life(tmp_path / "other")
    other.store.create(pod("b"), now=0)
    other.sync()
    mixed = other.crashed(tmp_path / "mixed")
    shutil.copy(one.with_name("journal-acknowledged"), mixed.parent)
    other.journal.close()

    with pytest.raises(JournalError, match="version 1 is not what was acknowledged"):
        reopened(mixed)


def test_a15_with_a_torn_file_the_store_is_a_beginning_or_says_what_is_wrong(life: Life, tmp_path: Path) -> None:
    for number in range(60):
        write(life.store, number)
        life.note()
    life.journal.close()
    whole = life.path.read_bytes()
    problems: list[str] = []
    for index in range(1, 24):
        torn = tmp_path / f"journal-{index}"
        torn.write_bytes(whole[: len(whole) * index // 24])
        try:
            life.check(torn, 0)
        except JournalError as error:
            problems.append(str(error))

    assert problems
    assert all(str(tmp_path) in problem for problem in problems)


@given(
    numbers=st.lists(st.integers(0, 60), max_size=20),
    syncs=st.sets(st.integers(0, 19)),
    compactions=st.dictionaries(st.integers(0, 19), st.integers(0, 5), max_size=2),
)
@settings(max_examples=usual(25))
def test_a15_every_write_survives_sync_and_compaction(
    numbers: list[int], syncs: set[int], compactions: dict[int, int]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        (Path(folder) / "life").mkdir()
        life = Life(Path(folder) / "life")
        for step, number in enumerate(numbers):
            write(life.store, number)
            life.note()
            if step in syncs:
                life.sync()
            if step in compactions:
                life.journal.compact(compactions[step])
                life.acknowledged = life.store.version
        life.check(life.crashed(Path(folder) / "crash"), life.acknowledged)
        life.journal.close()
        assert life.check(life.path, life.store.version) == life.store.version


def test_compaction_keeps_the_last_events_and_what_the_others_led_to(life: Life) -> None:
    for number in range(30):
        write(life.store, number)
    life.journal.compact(keep=5)
    life.journal.compact(keep=9)
    life.journal.close()

    store, journal = reopened(life.path)

    assert state(store) == state(life.store)
    assert store.events_since(store.version - 5) == life.store.events_since(store.version - 5)
    assert answer(refusal(store, lambda: store.events_since(store.version - 6))) == (410, "Expired")
    journal.close()


def test_compaction_to_nothing_leaves_the_objects(life: Life) -> None:
    life.store.create(pod("web"), now=0)
    life.journal.compact(keep=0)
    life.journal.close()

    store, journal = reopened(life.path)

    assert (store.version, state(store)) == (1, state(life.store))
    journal.close()


def test_a2_a_uid_is_never_used_again_not_even_after_a_restart(life: Life) -> None:
    given_uid = pod("given", metadata={"uid": "u1"})
    life.store.create(given_uid, now=0)
    drawn = life.store.create(pod("drawn"), now=0).uid
    life.store.delete("Pod", "default/given", now=0)
    life.store.delete("Pod", "default/drawn", now=0)
    life.journal.compact(keep=0)
    life.journal.close()

    store, journal = reopened(life.path)

    assert answer(refusal(store, lambda: store.create(given_uid, now=0))) == (422, "Invalid")
    assert store.create(pod("drawn"), now=0).uid != drawn
    journal.close()


def test_custom_resources_are_read_where_their_kind_is_known(life: Life) -> None:
    widget = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=False, is_custom=True)
    life.store.resources.define(widget, {})
    life.store.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}, now=0)
    life.journal.close()

    store, journal = reopened(life.path, resources=serving(widget))
    assert store.get("Widget.example.com", "a").version == 1
    journal.close()
    again = DurableJournal(str(life.path))
    with pytest.raises(StoreError, match=r"Widget\.example\.com"):
        Store(journal=again)
    again.close()


def test_a_journal_is_used_by_one_process(life: Life) -> None:
    life.store.create(pod("web"), now=0)
    life.sync()

    with pytest.raises(JournalInUseError, match="another process has it open") as caught:
        DurableJournal(str(life.path))

    assert str(life.path) in str(caught.value)


def test_a_file_that_is_not_a_journal_is_rejected(tmp_path: Path) -> None:
    text, other, future, empty = (tmp_path / name for name in ("text", "other", "future", "empty"))
    empty.touch()
    text.write_text("not a database, but long enough to be taken for one" * 20)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    DurableJournal(str(future)).close()
    with sqlite3.connect(future) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    for path, problem in (
        (text, "not a database"),
        (other, "not a journal"),
        (future, "format 99"),
        (tmp_path / "absent" / "a", "unable"),
        (empty, "is empty"),
    ):
        with pytest.raises(JournalError, match=problem) as caught:
            DurableJournal(str(path))
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["", ":memory:"])
def test_a_directory_is_not_a_journal(path: str) -> None:
    with pytest.raises(JournalError, match="not a path at which"):
        DurableJournal(path)


def test_after_a_full_disk_nothing_more_is_taken(life: Life, tmp_path: Path) -> None:
    life.store.create(pod("a"), now=0)
    life.note()
    life.sync()
    life.journal._connection.execute("PRAGMA max_page_count = 1")

    with pytest.raises(JournalError, match="full"):
        life.store.create(pod("b", annotations={"note": "x" * 100_000}), now=0)
    with pytest.raises(JournalError, match=r"full.*check the disk and its free space"):
        life.store.create(pod("c"), now=0)
    with pytest.raises(JournalError, match=r"full.*check the disk and its free space"):
        life.journal.close()

    assert [stored.key for stored in life.store.objects("Pod")] == ["default/a"]
    assert life.check(life.crashed(tmp_path / "crash"), life.acknowledged) == 1


def test_a_value_without_json_form_is_not_stored_partially(life: Life) -> None:
    broken: Any = {**pod("b"), "spec": {**pod("b")["spec"], "extra": {1, 2}}}

    def create_two() -> None:
        with life.store.transaction():
            life.store.create(pod("a"), now=0)
            life.store.create(broken, now=0)

    with pytest.raises(TypeError):
        create_two()
    life.store.create(pod("c"), now=0)
    life.journal.close()

    store, journal = reopened(life.path)
    assert [stored.key for stored in store.objects("Pod")] == ["default/c"]
    journal.close()
