"""The outcomes of a sweep's runs in a folder or an object store, so that a sweep that was stopped can go on.

Each run has a Parquet file of one row, the one that it has in the table of all runs, which other programs can read
while the sweep goes on. The file's metadata holds the whole outcome. Files are written as a whole or not at all.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api.errors import PodiumError
from podium.api.versions.release import own_version
from podium.app.sweeping.sweep import PlayedRun, Run, RunOutcome, Sweep, unpickled
from podium.app.sweeping.sweep_result import rows_of
from podium.sim.run_options import SimulationLimits

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_OUTCOME = b"podium.outcome"
_FIELDS = {
    "podium": "the version of Podium",
    "inputs": "the objects",
    "settings": "the varied settings",
    "options": "the options of the runs, or the configuration",
}


class RunFolder:
    """A folder with the outcomes of one sweep's runs; its seeds may become more."""

    def __init__(self, url: str) -> None:
        """Open a folder: a path, or an address such as s3://bucket/folder.

        Raises PodiumError without the extra `folders`, or for an address that cannot be opened.
        """
        try:
            import pyarrow  # noqa: F401 - an extra
            from fsspec.core import url_to_fs
        except ImportError:
            raise PodiumError(
                '--folder needs fsspec and Arrow: install them with pip install "podium[folders]"'
            ) from None
        self.url = url
        try:
            found: tuple[AbstractFileSystem, str] = url_to_fs(url)
        except (ImportError, OSError, ValueError) as error:
            raise PodiumError(f"--folder {url}: {error}") from None
        self._files, self._path = found

    def outcomes(self, sweep: Sweep, runs: Sequence[Run]) -> dict[Run, RunOutcome]:
        """Return the outcomes that the folder has of runs of the sweep; claim an empty folder for the sweep.

        Raises PodiumError for the folder of another sweep, and for files that cannot be read.
        """
        try:
            self._claim(sweep)
            kept = self.files_of(runs)
            # All at once: object stores answer many requests at a time.
            content_of = self._files.cat(list(kept.values())) if kept else {}
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: {error}") from None
        return {run: self._read(file, content_of[file]) for run, file in kept.items()}

    def files_of(self, runs: Sequence[Run]) -> dict[Run, str]:
        """Return the files of the runs that have an outcome. Raises OSError."""
        # Other machines write to the folder, too.
        self._files.invalidate_cache()
        directory = f"{self._path}/runs"
        files = self._files.ls(directory, detail=False) if self._files.exists(directory) else []
        file_of = {file.rpartition("/")[2]: file for file in files}
        return {run: file for run in runs if (file := file_of.get(_name_of(run)))}

    def name_of(self, sweep: Sweep) -> str:
        """Return a name that this folder's runs of the sweep have alone."""
        seeds = sweep.seeds.start, sweep.seeds.stop
        return hashlib.sha256(msgspec.json.encode((self.url, seeds, _identity(sweep)))).hexdigest()[:12]

    def plan(self, sweep: Sweep) -> str:
        """Keep the sweep itself for workers; return the name and digest by which they know it."""
        self._claim(sweep)
        content = own_version().encode() + b"\n" + pickle.dumps(sweep)
        plan = f"{self.name_of(sweep)}-{hashlib.sha256(content).hexdigest()}"
        self._write(f"{self._path}/plans/{plan}", content)
        return plan

    def planned(self, plan: str) -> Sweep:
        """Return a sweep that was kept for workers. Raises PodiumError if it is not there or has changed."""
        try:
            content = self._files.cat_file(f"{self._path}/plans/{plan}")
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: it has no plan {plan}: {error}") from None
        # The digest comes from the command line: the right to write to the folder alone brings in no code.
        if hashlib.sha256(content).hexdigest() != plan.rpartition("-")[2]:
            raise PodiumError(f"--folder {self.url}: the plan {plan} is not what was written")
        version, _, pickled = content.partition(b"\n")
        if version != own_version().encode():
            raise PodiumError(f"the plan is of Podium {version.decode()}, and the image has {own_version()}")
        return unpickled(pickled)

    def forget_plans(self, sweep: Sweep) -> None:
        """Remove the plans of the sweep, which no worker reads any more."""
        for file in self._files.glob(f"{self._path}/plans/{self.name_of(sweep)}-*"):
            self._files.rm_file(file)

    def keep(self, sweep: Sweep, run: Run, outcome: RunOutcome) -> RunOutcome:
        """Write the outcome of a run, and return it as it will be read."""
        import pyarrow
        from pyarrow import parquet

        written = msgspec.json.encode(outcome)
        kept = msgspec.json.decode(written, type=RunOutcome)
        row = rows_of([PlayedRun(sweep.variants[run.variant].combination, run.seed, kept)])
        table = pyarrow.Table.from_pylist(row).replace_schema_metadata({_OUTCOME: written})
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink)
        self._write(f"{self._path}/runs/{_name_of(run)}", sink.getvalue().to_pybytes())
        return kept

    def _write(self, file: str, content: bytes) -> None:
        try:
            self._files.makedirs(file.rpartition("/")[0], exist_ok=True)
            with self._files.transaction, self._files.open(file, "wb") as opened:
                opened.write(content)
        except OSError as error:
            raise PodiumError(f"--folder {self.url}: {file}: {error}") from None

    def _claim(self, sweep: Sweep) -> None:
        """Check that the folder belongs to the sweep; an empty one does from now on."""
        file, mine = f"{self._path}/sweep.json", _identity(sweep)
        if not self._files.exists(file):
            self._write(file, msgspec.json.format(msgspec.json.encode(mine), indent=2))
            return
        try:
            theirs = msgspec.json.decode(self._files.cat_file(file), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise PodiumError(f"--folder {self.url}: {file} is not the description of a sweep: {error}") from None
        different = [what for field, what in _FIELDS.items() if theirs.get(field) != mine[field]]
        if different:
            raise PodiumError(
                f"--folder {self.url}: it has the runs of another sweep, with a difference in "
                f"{', '.join(different)}; name another folder"
            )

    def _read(self, file: str, content: bytes) -> RunOutcome:
        import pyarrow
        from pyarrow import parquet

        try:
            written = parquet.read_schema(pyarrow.BufferReader(content)).metadata[_OUTCOME]
            return msgspec.json.decode(written, type=RunOutcome)
        except (pyarrow.ArrowException, KeyError, TypeError, msgspec.MsgspecError) as error:
            raise PodiumError(
                f"--folder {self.url}: {file} is not the outcome of a run: {error}; delete it to play the run again"
            ) from None


def _name_of(run: Run) -> str:
    return f"{run.variant:06d}-{run.seed}.parquet"


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Return what the runs depend on besides their seeds. The code of plugins is not part of it."""
    inputs = []
    for found in sweep.inputs:
        digest = hashlib.sha256()
        for document in found.documents:
            digest.update(msgspec.json.encode(document.read_raw(), order="deterministic"))
        inputs.append(digest.hexdigest())
    options = hashlib.sha256()
    for variant in sweep.variants:
        configuration = variant.options.configuration
        if configuration is not None:
            configuration = msgspec.structs.replace(configuration, source="")
        # Limits do not change the outcome of a run that ends within them.
        plain = replace(variant.options, configuration=configuration, limits=SimulationLimits())
        options.update(repr((variant.input, plain)).encode())
    return {
        "podium": own_version(),
        "inputs": inputs,
        "settings": [dict(variant.combination) for variant in sweep.variants],
        "options": options.hexdigest(),
    }
