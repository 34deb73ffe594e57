"""The short name of a pod template."""

from __future__ import annotations

import json
from hashlib import blake2b

from podium.api.meta import Raw


def template_hash(template: Raw, salt: str = "") -> str:
    """Ten hexadecimal digits that equal templates share; ``salt`` gives others."""
    text = json.dumps([template, salt], sort_keys=True)
    return blake2b(text.encode(), digest_size=5).hexdigest()
