"""Nominations on pods that are bound: written when the writer did not know of the binding yet."""

from __future__ import annotations


class StrayNominations:
    """Tells nominations that came after a binding from those that older API servers leave on the pods they bind.

    Nobody but the scheduler of a pod clears what comes after its binding, since the binding was to do that.
    """

    def __init__(self) -> None:
        # By uid, what bound pods showed when they were first seen.
        self._given: dict[str, str] = {}

    def observe(self, uid: str, shown: str, *, is_new: bool) -> bool:
        """Take in the nomination that a bound pod shows ("" for none); whether it is to be cleared.

        ``is_new``: the pod was not known before.
        """
        if not shown:
            self._given.pop(uid, None)
        elif is_new:
            self._given[uid] = shown
        else:
            return self._given.get(uid) != shown
        return False

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._given.pop(uid, None)
