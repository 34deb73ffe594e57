"""The records of disruptions, and where they come from: what a simulation answered, or the ledger of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.api.times import format_duration, format_time
from podium.machines.ledger.disruption import Disruption, Seconds, disruption_of
from podium.plane.ledger_file import LEDGER, is_ledger, read_ledger

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Account:
    """Records in their order, of one run or one cluster.

    Times count from the start of a run, or, with ``is_dated``, from 1970. ``end`` is the end of the run, or the last
    thing that is known of a cluster. ``dropped`` is how many earlier records were let go, to stay within bounds.
    ``caveats`` say what a cluster does not tell of which nobody kept account.
    """

    source: str
    records: tuple[Disruption, ...]
    end: Seconds
    is_dated: bool = False
    dropped: int = 0
    caveats: tuple[Caveat, ...] = ()

    def shown(self, time: Seconds) -> str:
        """A time as people read it."""
        if self.is_dated:
            return format_time(int(time * _SECOND))
        return format_duration(int(time * _SECOND))


def read_account(name: FileName) -> Account:
    """The account in a file: the JSON of `podium simulate` or `podium plan`, or a ledger. Raises InputError."""
    if name != "-" and is_ledger(str(name)):
        return ledger_account(str(name))
    return _of_results(read_bytes(name), shown_name(name))


def directory_account(directory: str) -> Account:
    """The account of what `podium up` keeps in a directory. Raises InputError."""
    path = Path(directory) / LEDGER
    if not path.exists():
        problem = f"there is no {LEDGER} in it; podium up --data-dir keeps one"
        raise InputError(problem, source=directory)
    return ledger_account(str(path))


def ledger_account(path: str) -> Account:
    """The account of a ledger. Raises InputError for one that is damaged, or none."""
    kept = read_ledger(path)
    end = max((last_of(record) for record in kept.records), default=0)
    return Account(path, kept.records, end, is_dated=True, dropped=kept.dropped)


def _of_results(text: bytes, source: str) -> Account:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        problem = "is neither JSON nor a ledger; give what podium simulate -o json printed, or the ledger of podium up"
        raise InputError(problem, source=source) from None
    if isinstance(raw, dict) and isinstance(raw.get("items"), list):
        # Few do.
        from podium.app.accounting.cluster import dumped_account

        return dumped_account(raw["items"], source)
    result = raw.get("result", raw) if isinstance(raw, dict) else None
    if not isinstance(result, dict) or "events" not in result or not isinstance(result.get("summary"), dict):
        problem = "is no result; give what podium simulate -o json, or podium plan -o json, printed"
        raise InputError(problem, source=source)
    found = result.get("ledger", [])
    if not isinstance(found, list):
        raise InputError("is no list of disruptions", source=source, path="ledger")
    records = tuple(_record(entry, number, source) for number, entry in enumerate(found))
    end = result["summary"].get("end", 0)
    if isinstance(end, bool) or not isinstance(end, int | float):
        raise InputError("is no number of seconds", source=source, path="summary.end")
    return Account(source, records, end)


def _record(raw: Any, number: int, source: str) -> Disruption:
    try:
        return disruption_of(raw)
    except msgspec.ValidationError as error:
        raise InputError(f"is no record of a disruption: {error}", source=source, path=f"ledger[{number}]") from None


def last_of(record: Disruption) -> Seconds:
    """The last time at which something happened of a disruption."""
    found = [record.loss.ended_after]
    if record.beneficiary is not None:
        found.append(record.beneficiary.placed_after)
    if record.replacement is not None:
        found += [record.replacement.placed_after, record.replacement.ready_after]
    return record.time + max((after for after in found if after is not None), default=0)
