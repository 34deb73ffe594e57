"""Who carries out what the collectors of a store want."""

from podium.requests.collecting import by_requests
from podium.requests.router import Router
from podium.store.controllers.steps import CarryOut
from podium.store.store import Store


def steps_at(store: Store) -> CarryOut:
    """By requests, as in simulations and servers."""
    return by_requests(Router(store, takes_history=True).answer)
