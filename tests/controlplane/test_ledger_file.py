"""The ledger file: its contents, its size, and its tolerance of faults."""

from __future__ import annotations

import io
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

import podium
from podium.api.errors import InputError
from podium.controllers.ledger.disruption import Disruption, EarlierRecords, FollowUp, ReplacementPod, UsageEntry
from podium.controlplane.ledger_file import LedgerFile, is_ledger, read_ledger

SOURCES = str(Path(podium.__file__).parents[1])
WRITER = """
import sys
from podium.controllers.ledger.disruption import Disruption, FollowUp
from podium.controlplane.ledger_file import LedgerFile
file = LedgerFile(sys.argv[1])
for number in range(file.last_id + 1, 1_000_000):
    found = Disruption(id=number, time=number, pod="default/a", uid="a", node="n" * 500, cause="drain")
    file.put(found, FollowUp(began_ns=1))
    file.flush(0)
    print(number, flush=True)
"""


def record(number: int, node: str = "n") -> Disruption:
    """Return a disruption of that number."""
    return Disruption(id=number, time=number, pod="default/a", uid="a", node=node, cause="drain")


def kept(path: Path) -> list[int]:
    """Return the numbers of the records in a file."""
    return [found.id for found in read_ledger(str(path)).records]


def test_ledger_entries_are_read_back_and_changes_replace_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(1))
    file.flush(0)
    file.put(record(1, "m"))
    file.put(record(2))
    file.close()

    assert read_ledger(str(path)).records == (record(1, "m"), record(2))
    assert LedgerFile(str(path)).last_id == 2


def test_the_ledger_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    LedgerFile(str(tmp_path / "ledger")).close()

    assert (tmp_path / "ledger").stat().st_mode & 0o077 == 0


def test_the_ledger_file_is_readable_during_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    for number in range(1, 4):
        file.put(record(number))
        file.flush(0)
        assert kept(path) == list(range(1, number + 1))
    file.close()


def test_a_process_that_dies_leaves_whole_records(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(1))
    file.flush(0)
    file.put(record(2))
    # As the files lie on the disk when the process is no more.
    for name in os.listdir(tmp_path):
        (tmp_path / "crashed").mkdir(exist_ok=True)
        shutil.copy(tmp_path / name, tmp_path / "crashed" / name)
    file.close()

    again = LedgerFile(str(tmp_path / "crashed" / "ledger"))
    assert again.last_id == 1
    again.close()


def test_a_process_that_is_killed_at_any_time_leaves_each_record_whole_and_none_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    for earlier in range(2):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env={"PYTHONPATH": SOURCES}
        )
        with writer, writer.stdout or io.BytesIO() as said:
            for _ in range(50):
                said.readline()
            writer.kill()

        numbers = kept(path)
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= 50 * (earlier + 1)


def test_two_programs_do_not_write_one_ledger_and_what_the_first_has_counted_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(1))

    with pytest.raises(InputError, match="ledger: is written by another program; give each a file of its own"):
        LedgerFile(str(path))

    file.close()
    assert kept(path) == [1]
    LedgerFile(str(path)).close()


def test_a_ledger_that_is_refused_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b"not at all" * 600)
    with pytest.raises(InputError, match="is damaged"):
        LedgerFile(str(path))

    path.unlink()
    LedgerFile(str(path)).close()


@pytest.mark.parametrize("format_", [0, 2])
def test_a_ledger_of_another_format_is_named_and_stays_as_it_is(tmp_path: Path, format_: int) -> None:
    path = tmp_path / "ledger"
    LedgerFile(str(path)).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {format_}")
    content = path.read_bytes()

    for read in (read_ledger, LedgerFile):
        with pytest.raises(InputError, match=f"it is a ledger of format {format_}, not 1"):
            read(str(path))
    assert path.read_bytes() == content


def test_a_full_disk_at_startup_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limit[1]))
    try:
        with pytest.raises(InputError) as raised:
            LedgerFile(str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert "cannot be written: " in str(raised.value)
    assert "damaged" not in str(raised.value)


def test_times_that_go_back_keep_records_in_their_order_and_let_go_of_none_for_that(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path), kept_seconds=100)
    for number, time in enumerate((1_000, 900, 950, 1_010), 1):
        file.put(replace(record(number), time=time), FollowUp(began_ns=time))
        file.flush(0)
    file.close()

    assert kept(path) == [1, 2, 3, 4]


def test_the_oldest_go_where_there_are_too_many_and_it_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path), most_records=3)
    for number in range(1, 11):
        file.put(record(number))
        file.flush(0)
    file.close()

    found = read_ledger(str(path))
    assert len(found.records) + found.dropped == 10
    assert len(found.records) <= 5
    assert found.records[-1].id == 10


def test_the_old_go_as_others_come_and_the_trails_with_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path), kept_seconds=100)
    for number in (1, 50, 100, 102, 151):
        file.put(record(number), FollowUp(began_ns=number))
        file.flush(0)
        assert kept(path) == [other for other in (1, 50, 100, 102, 151) if number - 100 <= other <= number]
    # What is no longer kept does not come again.
    file.put(record(1, "m"))
    file.put(record(100, "m"))
    file.close()

    assert kept(path) == [100, 102, 151]
    assert read_ledger(str(path)).dropped == 2
    again = LedgerFile(str(path), kept_seconds=100)
    assert [found.id for found, _ in again.earlier().followed] == [102, 151]
    again.put(record(210))
    again.close()
    assert kept(path) == [151, 210]


def test_age_counts_for_nothing_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path), kept_seconds=0)
    for number in (1, 10**9):
        file.put(record(number))
        file.flush(0)
    file.close()

    assert kept(path) == [1, 10**9]


def test_unfinished_ledger_entries_keep_the_state_to_continue(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    trail = FollowUp(began_ns=2, controller="web")
    file.put(record(1), trail)
    file.put(record(2), trail)
    file.put(replace(record(3), replacement=ReplacementPod(pod="default/b", uid="b")))
    file.flush(0)
    file.put(record(1))
    file.close()

    assert LedgerFile(str(path)).earlier() == EarlierRecords(((record(2), trail),), frozenset(("b",)))


@pytest.mark.parametrize("damage", [b"{", b"[]", b'{"beganNs": "x"}'])
def test_an_invalid_trail_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(7), FollowUp(began_ns=1))
    file.flush(0)
    file._connection.execute("UPDATE trails SET trail = ?", (damage,))

    with pytest.raises(InputError, match="trail of disruption 7"):
        file.earlier()
    file.close()


def test_a_full_disk_blocks_no_component_and_pending_entries_are_written_later(tmp_path: Path) -> None:
    path, report = tmp_path / "ledger", list[str]()
    file = LedgerFile(str(path), report.append, most_waiting=2)
    file._connection.execute("PRAGMA max_page_count = 1")
    for number in range(1, 4):
        file.put(Disruption(id=number, time=1, pod="p", uid="u", node="n" * 50_000, cause="drain"))
        file.flush(number)
    assert report == ["database or disk is full"]
    assert file.lost == 1

    file._connection.execute("PRAGMA max_page_count = 1000000")
    file.flush(10**10 + 10)
    file.close()

    assert report == ["database or disk is full", ""]
    assert kept(path) == [2, 3]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"x" * 5_000, b"not at all" * 600])
def test_a_broken_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(content)

    with pytest.raises(InputError, match="ledger"):
        read_ledger(str(path))
    if content:
        with pytest.raises(InputError, match="move it away"):
            LedgerFile(str(path))
        assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE found (a)")
    other.close()

    assert is_ledger(str(path))
    for read in (read_ledger, LedgerFile):
        with pytest.raises(InputError, match="not a ledger of Podium's"):
            read(str(path))


@pytest.mark.parametrize("damage", [b"{", b'{"id": 1}', b"[" * 50_000, b'"' + b"x" * 200_000 + b'"'])
def test_an_invalid_record_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(7))
    file.flush(0)
    file._connection.execute("UPDATE disruptions SET record = ?", (damage,))
    file.close()

    with pytest.raises(InputError, match="disruption 7"):
        read_ledger(str(path))


def test_records_of_a_later_release_are_no_damage_and_unknown_fields_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(7))
    file.flush(0)
    later = b'{"id": 7, "time": 7, "pod": "default/a", "uid": "a", "node": "n", "cause": "%s", "mood": 1}'
    file._connection.execute("UPDATE disruptions SET record = ?", (later % b"drain",))
    assert read_ledger(str(path)).records == (record(7),)

    file._connection.execute("UPDATE disruptions SET record = ?", (later % b"meteor",))
    file.close()

    with pytest.raises(InputError, match=r"or of a later Podium: disruption 7: .*meteor"):
        read_ledger(str(path))


def test_the_ledger_file_is_readable_in_a_read_only_directory(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    file = LedgerFile(str(path))
    file.put(record(1))
    file.close()
    tmp_path.chmod(0o500)
    try:
        assert kept(path) == [1]
    finally:
        tmp_path.chmod(0o700)


def used(hour: int, **requested: float) -> UsageEntry:
    return UsageEntry(hour=hour * 3_600, namespace="shop", priority_class="high", priority=9, requested=requested)


def test_usage_is_summed_by_hour_and_old_hours_are_dropped(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    file = LedgerFile(path, kept_seconds=7_200)
    file.put_usage([used(0, cpu=1.0, pods=0.5), used(1, cpu=2.0)])
    file.flush(0)
    file.put_usage([used(1, cpu=0.5)])
    file.flush(0)
    assert read_ledger(path).usage == (used(0, cpu=1.0, pods=0.5), used(1, cpu=2.5))

    file.put_usage([used(3, cpu=1.0)])
    file.close()

    assert read_ledger(path).usage == (used(1, cpu=2.5), used(3, cpu=1.0))
