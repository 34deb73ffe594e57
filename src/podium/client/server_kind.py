"""Whose API server it is."""

from __future__ import annotations

from podium.client.session import NoAnswerError, Session


async def is_podiums(session: Session) -> bool:
    """Whether the API server is one of Podium's own; one that does not answer is taken for another.

    Those write with an eviction what it leaves behind, and count disruptions; of others whoever asks them does that.
    """
    try:
        version = (await session.read("/version")).object or {}
    except NoAnswerError:
        return False
    return "+podium" in str(version.get("gitVersion", ""))
