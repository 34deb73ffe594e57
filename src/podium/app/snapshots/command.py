"""`podium snapshot` and `podium record`: a cluster, or its changes, in a file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podium.app.console.command import Command, option
from podium.app.console.options import ClusterSource, Duration, Source, cluster_options, original_source_options

if TYPE_CHECKING:
    from podium.api.input.documents import Snapshot
    from podium.app.snapshots.cluster import Part, SnapshotFile

_MEBIBYTE = 1 << 20
_SHORTEST_NS = 10**9
_SNAPSHOT_EPILOG = """
\b
Examples: save the current context's cluster, and explain what would happen to a pod there
  podium snapshot --save cluster.podium
  podium explain shop/web -f cluster.podium
"""


@click.command(cls=Command, epilog=_SNAPSHOT_EPILOG)
@original_source_options
@option("--save target", "The file; - is standard output.", metavar="FILE", required=True)
@option(
    "--include kept",
    "Keep what is omitted by default: annotations that Podium does not read, env (environment, commands, probes "
    "and hooks of containers), managed-fields, secrets. May be repeated.",
    type=click.Choice(["annotations", "env", "managed-fields", "secrets"]),
    metavar="PART",
    multiple=True,
)
def snapshot(*, source: Source, target: str, kept: tuple[Part, ...]) -> None:
    """Save what explanations and simulations read of a cluster in a file.

    Rights to list are enough. Kinds that you are not allowed to list are reported, also in each answer from the file.
    With -f the snapshot is made from files instead, such as a dump.
    """
    from podium.app.console.output import say
    from podium.app.snapshots.cluster import keep_cluster, snapshot_file

    if target == "-" and sys.stdout.isatty():
        raise click.UsageError("a snapshot is not for a terminal; name a file with --save")
    if source.cluster is not None and source.files:
        raise click.UsageError("give either files with -f or a cluster with --context, and not both")
    cluster = source.or_current_cluster().cluster
    with snapshot_file(target) as file:
        about = _keep_files(file, source.files, kept) if cluster is None else keep_cluster(file, cluster, kept)
        file.end(about)
    lines = [f"{file.count:,} objects {about.origin}"]
    lines += [
        f"{hidden.kind} ({hidden.api_version}): you are not allowed to list them: {hidden.message}"
        for hidden in about.hidden
    ]
    lines += [
        f"{passed.count:,} {passed.kind} ({passed.api_version}): not of a kind that Podium reads"
        for passed in about.passed_over
    ]
    if about.not_served:
        lines.append(f"not served there: {', '.join(about.not_served)}")
    if about.left_out:
        lines.append(f"left out: {'; '.join(about.left_out)}")
    for line in lines:
        say(line)


def _keep_files(file: SnapshotFile, files: Sequence[str], kept: Sequence[Part]) -> Snapshot:
    """Save the supported objects of files, and those of Podium's own kinds; count all others."""
    from podium.api.input.documents import API_VERSION, Snapshot, passed_over
    from podium.api.kinds import group_of
    from podium.api.meta import ObjectMeta
    from podium.app.console.reading import read_shown
    from podium.app.snapshots.cluster import Slimmer, left_out_beside

    slimmer = Slimmer(kept)
    own = group_of(API_VERSION)
    others = []
    for document in read_shown(files, "ignore").documents:
        raw = document.read_raw()
        is_kept = document.object is not None or group_of(raw["apiVersion"]) == own
        if is_kept or (raw["kind"] == "Secret" and "secrets" in kept):
            file.add(slimmer.slim(raw))
        else:
            others.append(document)
    counts = tuple(passed_over(others))
    return Snapshot(metadata=ObjectMeta(name="files"), left_out=left_out_beside(kept), passed_over=counts)


_RECORD_EPILOG = """
\b
Example: record for an hour, and replay it with another configuration
  podium record --context prod --for 1h --save hour.podium
  podium simulate -f hour.podium --config scheduler.yaml
"""


@click.command(cls=Command, epilog=_RECORD_EPILOG)
@cluster_options
@option("--save target", "The file to write; with --every, the folder.", metavar="FILE", required=True)
@option("--for length", "How long to record; default: until interrupted.", type=Duration())
@option(
    "--max-size",
    "End before the file exceeds this size, uncompressed; with --every, begin the next one.",
    type=click.IntRange(1, 1000),
    default=500,
    show_default=True,
    metavar="MIB",
)
@option("--every", "Begin another file after this time, in a folder.", type=Duration())
def record(*, cluster: ClusterSource, target: str, length: int | None, max_size: int, every: int | None) -> None:
    """Record the changes of a cluster in a file.

    Rights to list and watch are enough. The file has the objects at the start, a Scenario with the later requests of
    users, and the reactions of the cluster's schedulers and controllers. `podium simulate` replays the file and
    compares its own reactions. What was recorded survives a kill: the next start completes the file.
    """
    import asyncio

    from podium.api.times import format_duration
    from podium.app.console.output import say
    from podium.app.console.page import counted
    from podium.app.recording.recording import Limits, record

    if every is not None and every < _SHORTEST_NS:
        raise click.BadParameter("files of less than a second are not useful", param_hint="--every")
    made = asyncio.run(record(cluster, target, Limits(length, max_size * _MEBIBYTE, every), say))
    ended = "the file is full" if made.is_full and every is None else "recorded"
    files = "" if every is None else f"{counted(made.files, 'file')}, "
    say(f"{ended}: {files}{format_duration(made.length_ns)}, {made.steps:,} steps, {made.events:,} events")
