"""The addresses of simulated nodes and pods. Nothing answers there; people and programs expect them to be told."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

NODES = IPv4Network("172.16.0.0/12")
PODS = IPv4Network("10.0.0.0/8")


class Addresses:
    """Gives each holder, by uid, an address of a network; nobody has another's while it is held."""

    def __init__(self, network: IPv4Network) -> None:
        self._first = int(network.network_address)
        self._size = network.num_addresses
        self._last_given = 0
        self._of: dict[str, str] = {}
        self._holders: dict[str, str] = {}

    def of(self, uid: str) -> str:
        """The holder's address, the next free one where it has none yet; "" where all are held."""
        found = self._of.get(uid)
        if found is not None:
            return found
        # The first and the last of a network are nobody's.
        for _ in range(self._size - 2):
            self._last_given = self._last_given % (self._size - 2) + 1
            address = str(IPv4Address(self._first + self._last_given))
            if address not in self._holders:
                self.note(uid, address)
                return address
        return ""

    def note(self, uid: str, address: str) -> None:
        """The API shows that a holder has this address."""
        if address and self._of.get(uid) != address:
            self.free(uid)
            self._of[uid] = address
            self._holders[address] = uid

    def free(self, uid: str) -> None:
        """The holder is no more."""
        address = self._of.pop(uid, None)
        if address is not None and self._holders.get(address) == uid:
            del self._holders[address]
