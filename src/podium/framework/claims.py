"""What a PreBind plugin wants done about a claim before the pod is bound."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimBinding:
    """Bind a claim to a volume, or (``volume`` "") have one provisioned that ``node_name`` can reach.

    ``claim`` is the claim's `namespace/name` and ``uid`` its uid. ``timeout_ns`` is how long that may take, None for as
    long as it does: once it is over, the pod goes back to the queue.
    """

    claim: str
    uid: str
    volume: str
    node_name: str
    timeout_ns: int | None = None
