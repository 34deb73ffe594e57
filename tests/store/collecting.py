"""A driver of the garbage collectors of a store."""

from podium.apirequests.actions import cleanup_by_requests
from podium.apirequests.router import Router
from podium.store.cleanup import StepRunner
from podium.store.store import Store


def steps_at(store: Store) -> StepRunner:
    """By requests, as in simulations and servers."""
    return cleanup_by_requests(Router(store, takes_history=True).answer)
