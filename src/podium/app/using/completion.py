"""Completion of names: contexts of the kubeconfig, and names in the cluster of a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import click

from podium.app.using import client

MOST_NAMES = 500
"""The maximum number of names that are offered."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def _completing(names_of: Callable[[click.Context], Iterable[str]]) -> Complete:
    """Return the function that completes names; it offers nothing if they cannot be found."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from podium.api.errors import PodiumError

        with suppress(PodiumError, OSError):
            return sorted(name for name in set(names_of(ctx)) if name.startswith(incomplete))[:MOST_NAMES]
        return []

    return complete


def _contexts(ctx: click.Context) -> Iterable[str]:
    from podium.client.kubeconfig import Kubeconfig, kubeconfig_paths

    return Kubeconfig(*kubeconfig_paths(ctx.params.get("kubeconfig") or "", os.environ)).contexts


def _nodes(_: click.Context) -> Iterable[str]:
    return [] if client.answering is None else client.answering.cluster.nodes


def _namespaces(_: click.Context) -> Iterator[str]:
    if client.answering is not None:
        for document in client.answering.cluster.read.documents:
            if document.object is not None and document.object.metadata.namespace:
                yield document.object.metadata.namespace


def _targets(ctx: click.Context) -> Iterator[str]:
    """Yield pods and workloads, those of the chosen namespace without it."""
    if client.answering is None:
        return
    from podium.app.explaining.workload import KIND_OF_WORD, POD

    # The shortest word for each kind, which comes last.
    words = {kind: word for word, kind in sorted(KIND_OF_WORD.items(), key=lambda item: -len(item[0]))}
    namespace = ctx.params.get("namespace") or "default"
    for document in client.answering.cluster.read.documents:
        item = document.object
        if item is not None and type(item).__name__ in words:
            kind, own = type(item).__name__, item.metadata.namespace == namespace
            name = item.metadata.name if own else item.key
            yield name if kind == POD else f"{words[kind]}/{name}"


contexts, nodes, namespaces, targets = map(_completing, (_contexts, _nodes, _namespaces, _targets))
