"""The contents of a store, and a check that a refused write changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store


def everything(store: Store) -> Any:
    """All objects, the log, and the version."""
    objects = {resource.name: store.objects(resource.name) for resource in store.resources.all()}
    return objects, store.version


def refusal(store: Store, write: Callable[[], Any]) -> StoreError:
    """Return the error of a write, which must leave everything as it was."""
    before = everything(store)
    with pytest.raises(StoreError) as caught:
        write()
    assert everything(store) == before
    return caught.value


def answer(error: StoreError) -> tuple[int, str]:
    """Return the error's code and reason."""
    return error.code, error.reason
