"""What can go wrong with plugins and their configuration."""

from __future__ import annotations

from podium.api.errors import PodiumError


class PluginError(PodiumError):
    """A plugin broke its contract or failed; says which one, at which point, for which pod."""
