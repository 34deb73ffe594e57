"""The selection of files in a directory: all manifests, including those in subfolders.

Skipped with a warning: links that point outside of the directory, links to folders, Helm charts, and resources that
kustomize would transform. Hidden files and folders are skipped without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.api.errors import InputError
from podium.api.input import yaml
from podium.api.input.files import FileName, read_bytes, shown_name
from podium.api.warnings import InputWarning

_SUFFIXES = (".json", ".podium", ".yaml", ".yml")
_PACKED = ".gz"
_CHART = "Chart.yaml"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# The kustomization fields that do not change any object in the files.
_GATHERS = frozenset(
    (
        *("apiVersion", "configMapGenerator", "generatorOptions", "kind", "metadata", "openapi", "resources"),
        *("secretGenerator", "sortOptions"),
    )
)


def files_of(name: FileName) -> tuple[list[FileName], list[InputWarning]]:
    """Return the file itself; for a directory, its manifests, and warnings for what is skipped.

    Manifests end in .yaml, .yml or .json, optionally with .gz, and snapshots in .podium. Files of a folder are sorted
    by name, before those of its subfolders. Raises InputError for a directory without anything to read.
    """
    if name == "-" or not Path(name).is_dir():
        return [name], []
    root = Path(name)
    left_out: list[InputWarning] = []
    files: list[FileName] = list(_files(root, root.resolve(), left_out))
    if not files:
        reasons = "; ".join(f"{warning.source}: {warning.message}" for warning in left_out[:3])
        problem = f"nothing in the directory can be read: {reasons}" if reasons else _NO_FILE
        raise InputError(problem, source=shown_name(name))
    return files, left_out


_NO_FILE = "the directory has no .yaml, .yml, .json or .podium file, packed with gzip or not"


def _files(folder: Path, root: Path, left_out: list[InputWarning]) -> Iterator[Path]:
    entries = _entries(folder, left_out)
    names = [path.name for path in entries]
    if _CHART in names:
        command = f"helm template {shown_name(folder)} > objects.yaml"
        left_out.append(_left_out(folder, f"is a Helm chart; run `{command}`, and give the file that it makes"))
        return
    kustomization = next((entry for entry in entries if entry.name in _KUSTOMIZATIONS), None)
    if kustomization is not None:
        command = f"kubectl kustomize {shown_name(folder)} > objects.yaml"
        advice = f"run `{command}`, and give the file that it makes"
        if not _only_gathers(kustomization, root):
            left_out.append(_left_out(folder, f"is changed by its {kustomization.name}; {advice}"))
            return
        left_out.append(_left_out(kustomization, f"is left out, and the files beside it are read; else {advice}"))
    for entry in entries:
        is_manifest = entry.name.removesuffix(_PACKED).endswith(_SUFFIXES) and (entry.is_file() or entry.is_symlink())
        if is_manifest and entry != kustomization and _stays_within(entry, root, left_out):
            yield entry
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            yield from _files(entry, root, left_out)


def _entries(folder: Path, left_out: list[InputWarning]) -> list[Path]:
    """Return the visible entries of a folder, by name."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        left_out.append(_left_out(folder, f"cannot be read: {error.strerror or error}"))
        return []


def _stays_within(entry: Path, root: Path, left_out: list[InputWarning]) -> bool:
    """Return whether the file is within the directory, after links are resolved."""
    if not entry.is_symlink():
        return True
    try:
        target = entry.resolve(strict=True)
        is_within = target.is_relative_to(root) and target.is_file()
    except (OSError, RuntimeError):
        is_within = False
    if not is_within:
        left_out.append(_left_out(entry, "is a link to something else than a file in the directory, and is left out"))
    return is_within


def _only_gathers(kustomization: Path, root: Path) -> bool:
    """Return whether kustomize would produce exactly what the folder's files contain."""
    if kustomization.is_symlink() and not kustomization.resolve().is_relative_to(root):
        return False
    try:
        documents = [document for _, document in yaml.parse_documents(read_bytes(kustomization).decode())]
    except (InputError, UnicodeDecodeError):
        return False
    return all(isinstance(document, dict) and _gathers(document, kustomization.parent) for document in documents)


def _gathers(document: dict[str, Any], folder: Path) -> bool:
    """Return whether a kustomization only lists files of its folder, or adds objects that pods do not depend on."""
    resources = document.get("resources", [])
    if not isinstance(resources, list) or not all(isinstance(resource, str) for resource in resources):
        return False
    names = [resource.removeprefix("./") for resource in resources]
    are_files = all("/" not in name and (folder / name).is_file() for name in names)
    return are_files and _GATHERS.issuperset(document)


def _left_out(path: Path, message: str) -> InputWarning:
    return InputWarning(message, "left-out", source=shown_name(path))
