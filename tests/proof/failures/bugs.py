"""Bugs put back into the real code, and the stories that must find them.

A story is a test that takes nothing: it tells a machine what happens and asserts what must hold. `caught` tells it
twice, to the code as it is and with the bug, so that each test proves of itself that it would have found the failure.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from podium.cluster.nominations import Nominations

# What a bug is put in the place of.
Right = Callable[..., Any]
Story = Callable[[], object]
Bug = AbstractContextManager[None]


@contextmanager
def instead(owner: object, name: str, wrong: Right) -> Iterator[None]:
    """Let ``owner.name`` do as ``wrong`` does; that is called with the right function, and then as the right one is."""
    right = getattr(owner, name)
    with patch.object(owner, name, lambda *args, **kwargs: wrong(right, *args, **kwargs)):
        yield


def nothing(right: Right, *args: Any, **kwargs: Any) -> None:
    """Leave out what should have been done."""


def none_of_it(right: Right, *args: Any, **kwargs: Any) -> list[Any]:
    """Find nothing where there may have been something."""
    return []


@contextmanager
def nominated_count_for_nobody() -> Iterator[None]:
    """Hide the nominations of every node, in single and batch checks."""
    with instead(Nominations, "on_row", none_of_it), instead(Nominations, "rivals", none_of_it):
        yield


def holds(story: Story) -> None:
    """Check that the story holds for the real code."""
    story()


def fails(story: Story, bug: Bug, raising: type[Exception] = AssertionError) -> None:
    """With the bug, the story's assertion fails; where the bug is a crash, ``raising`` says what it crashes with."""
    with bug, pytest.raises(raising):
        story()


def caught(story: Story, bug: Bug, raising: type[Exception] = AssertionError) -> None:
    """Check that the story holds, and finds the bug."""
    holds(story)
    fails(story, bug, raising)
