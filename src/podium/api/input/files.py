"""File input: the only module of this layer that accesses the file system.

Of a directory, all manifests are read, including those in subfolders. Skipped with a warning: links that point outside
of the directory, links to folders, Helm charts, and resources that kustomize would transform. Hidden files and folders
are skipped without one.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from podium.api.errors import InputError, InputWarning, os_error_as
from podium.api.input import yaml

FileName = str | Path
"""A path, or "-" for standard input."""

MAX_FILE_BYTES = 1 << 30
"""The maximum size in bytes of a file, and of its decompressed content."""

_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 16
# Manifests compress by a factor of ten or twenty; decompression bombs by a thousand.
_MAX_RATIO = 200
_ALWAYS_UNPACKED_BYTES = 1 << 26


def shown_name(name: FileName) -> str:
    """Return the file's name for errors and documents."""
    return "standard input" if name == "-" else str(name)


def size_of(name: FileName) -> int:
    """Return the size of the file in bytes; 0 if it is not known in advance."""
    try:
        return 0 if name == "-" else Path(name).stat().st_size
    except OSError:
        return 0


@contextmanager
def opened(name: FileName) -> Iterator[BinaryIO]:
    """Open the file's content as a seekable stream, decompressed if it is gzip.

    Raises InputError if it cannot be read, or is too large.
    """
    with os_error_as("cannot be read", shown_name(name)):
        if name == "-":
            yield BytesIO(_read(sys.stdin.buffer, name))
            return
        with Path(name).open("rb") as stream:
            size = size_of(name)
            _check_size(size, name)
            # A special file has no size, and can be read only once.
            is_plain = size > 0 and not stream.peek(len(_GZIP)).startswith(_GZIP)
            yield stream if is_plain else BytesIO(_read(stream, name))


def read_bytes(name: FileName) -> bytes:
    """Return the file's content, decompressed if it is gzip. Raises InputError as `opened` does."""
    with opened(name) as stream:
        return stream.read()


def _read(stream: BinaryIO, name: FileName) -> bytes:
    content = stream.read(MAX_FILE_BYTES + 1)
    _check_size(len(content), name)
    return _unpacked(content, name) if content.startswith(_GZIP) else content


def _check_size(size: int, name: FileName) -> None:
    if size > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES} bytes; split it", source=shown_name(name))


def _unpacked(packed: bytes, name: FileName) -> bytes:
    """Return the decompressed content of one or several gzip members. Raises InputError if invalid or too large."""
    most = min(MAX_FILE_BYTES, max(_ALWAYS_UNPACKED_BYTES, len(packed) * _MAX_RATIO))
    parts: list[bytes] = []
    size = 0
    while packed.startswith(_GZIP):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | _GZIP_FORMAT)
        try:
            parts.append(unpacker.decompress(packed, most - size + 1))
        except zlib.error:
            raise InputError("is not a complete gzip file", source=shown_name(name)) from None
        size += len(parts[-1])
        if size > most:
            problem = f"unpacks to more than {most} bytes; unpack it yourself if it is meant to"
            raise InputError(problem, source=shown_name(name))
        if not unpacker.eof:
            raise InputError("is not a complete gzip file", source=shown_name(name))
        packed = unpacker.unused_data
    return b"".join(parts)


_SUFFIXES = (".json", ".podium", ".yaml", ".yml")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# The kustomization fields that do not change any object in the files.
_GATHERS = frozenset(
    "apiVersion configMapGenerator generatorOptions kind metadata openapi resources secretGenerator sortOptions".split()
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
    if "Chart.yaml" in names:
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
        is_manifest = entry.name.removesuffix(".gz").endswith(_SUFFIXES) and (entry.is_file() or entry.is_symlink())
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
    # It then only lists files of the folder, or adds objects that pods do not depend on.
    if kustomization.is_symlink() and not kustomization.resolve().is_relative_to(root):
        return False
    try:
        documents = [document for _, document in yaml.parse_documents(read_bytes(kustomization).decode())]
    except (InputError, UnicodeDecodeError):
        return False
    names: list[Any] = []
    for document in documents:
        resources = document.get("resources", []) if isinstance(document, dict) else None
        if not isinstance(resources, list) or not _GATHERS.issuperset(document):
            return False
        names += resources
    files = (isinstance(name, str) and name.removeprefix("./") for name in names)
    return all(file and "/" not in file and (kustomization.parent / file).is_file() for file in files)


def _left_out(path: Path, message: str) -> InputWarning:
    return InputWarning(message, "left-out", source=shown_name(path))
