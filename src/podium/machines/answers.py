"""What the API server's answer to an action means to whoever asked.

Source: k8s.io/apimachinery (pkg/api/errors), and which of them the controllers of kube-controller-manager excuse.
"""

from __future__ import annotations

from enum import Enum

from podium.machines.actions import Action, CreateObject, DeleteObject, Evict

_DELETIONS = (DeleteObject, Evict)
# No answer at all, or that of a gateway which got none.
_UNKNOWN = (0, 504)
# Answers that a server, or what stands before it, gives for a while: request timeout, gone watches, too early.
_PASSING = (408, 410, 425, 429)
# Quota admission names no cause; this is how its message goes on after the object's name.
_EXCEEDED = "exceeded quota"


class Answer(Enum):
    """The kinds of answers, by what can be done about them."""

    DONE = "carried out"
    GONE = "there is no such object, which the API will show"
    REPLACED = "another object has its name, which the API will show"
    STALE = "the object is not what it was taken for: read it, and ask anew"
    FULL = "there is no room, in a quota, a budget, a rate or a cap, until somebody leaves some"
    REFUSED = "not like this: the same is refused again until somebody changes something"
    PASSING = "not now: the same may be carried out later"
    UNKNOWN = "no answer came: it may have been carried out, or not"

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to ask for. What is said to be replaced is asked for until that is seen."""
        return self in (Answer.DONE, Answer.GONE)

    @property
    def lasts(self) -> bool:
        """Whether asking again has the same answer until somebody else changes something."""
        return self in (Answer.FULL, Answer.REFUSED)


def classify(action: Action, code: int, reason: str, message: str) -> Answer:
    """What a refusal of an action means; ``code`` 0 where no answer came.

    A Conflict answers a precondition. That of a deletion is the uid alone, so that its object has been replaced. A
    write may have been made from an old version, or the server may have been beaten to it by another write.
    """
    if code in _UNKNOWN:
        return Answer.UNKNOWN
    if code == 404:
        return Answer.GONE
    if code == 409:
        is_replaced = reason == "AlreadyExists" or isinstance(action, _DELETIONS)
        return Answer.REPLACED if is_replaced else Answer.STALE
    is_exceeded = code == 403 and isinstance(action, CreateObject) and _EXCEEDED in message
    if is_exceeded or (code == 429 and isinstance(action, Evict)):
        return Answer.FULL
    return Answer.REFUSED if 400 <= code < 500 and code not in _PASSING else Answer.PASSING
