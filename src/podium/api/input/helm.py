"""Helm templates: manifests that only Helm can complete."""

from __future__ import annotations

import re

HELM_ADVICE = (
    "it looks like a template of a Helm chart: run `helm template CHART > objects.yaml`, and give that file instead"
)
"""The advice for a Helm template."""

# The beginnings of template actions; other languages with double braces rarely use them.
_ACTION = re.compile(
    r"\{\{-?\s*(?:[.$]|/\*|(?:block|define|else|end|if|include|range|required|template|toYaml|tpl|with)\b)"
)


def looks_like_template(text: str) -> bool:
    """Return whether an unreadable text is a Helm template."""
    return _ACTION.search(text) is not None
