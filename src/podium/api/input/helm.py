"""Templates of Helm charts: manifests that only Helm can complete."""

from __future__ import annotations

import re

HELM_ADVICE = (
    "it looks like a template of a Helm chart: run `helm template CHART > objects.yaml`, and give that file instead"
)
"""What to do with one."""

# What such templates begin an action with, and what other languages in double braces hardly do.
_ACTION = re.compile(
    r"\{\{-?\s*(?:[.$]|/\*|(?:block|define|else|end|if|include|range|required|template|toYaml|tpl|with)\b)"
)


def looks_like_template(text: str) -> bool:
    """Whether a text that could not be read is such a template."""
    return _ACTION.search(text) is not None
