"""Stores with a journal, and their contents at each version."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

from podium.store.durable_journal import DurableJournal
from podium.store.store import Store
from tests.store.objects import Raw

State = dict[tuple[str, str], Raw]


def state(store: Store) -> State:
    found = (stored for resource in store.resources.all() for stored in store.objects(resource.name))
    return {(stored.kind, stored.key): stored.raw for stored in found}


class Life:
    """A store with a journal, and every state that it was in, by version."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.path = folder / "journal"
        self.journal = DurableJournal(str(self.path))
        self.store = Store(journal=self.journal, **settings)
        self.states = {self.store.version: state(self.store)}
        self.acknowledged = self.store.version

    def note(self) -> None:
        """Remember the state after a write or a transaction."""
        self.states[self.store.version] = state(self.store)

    def sync(self) -> None:
        self.journal.sync()
        self.acknowledged = self.store.version

    def crashed(self, folder: Path) -> Path:
        """Return the files as a crash at this instant leaves them."""
        folder.mkdir()
        for file in self.path.parent.glob("journal*"):
            if file.is_file():
                shutil.copy(file, folder / file.name)
        return folder / "journal"

    def check(self, path: Path, at_least: int, *, accept_loss: bool = False) -> int:
        """Return a store that begins with these files must be what this one once was; returns its version."""
        with closing(DurableJournal(str(path), accept_loss=accept_loss)) as journal:
            store = Store(journal=journal)
        assert store.version >= at_least
        assert state(store) == self.states[store.version]
        return store.version


def reopened(path: Path, **settings: Any) -> tuple[Store, DurableJournal]:
    journal = DurableJournal(str(path))
    return Store(journal=journal, **settings), journal
