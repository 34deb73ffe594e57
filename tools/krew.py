"""The archive and manifest of the kubectl plugin for krew.

`python3 tools/krew.py FOLDER` writes this version's archive into a folder, and `deploy/krew/podium.yaml` with its
checksum. Equal files give equal archives. Needs only the standard library.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "deploy" / "krew" / "podium.yaml"
_FILES = ((ROOT / "deploy" / "krew" / "kubectl-podium", 0o755), (ROOT / "LICENSE", 0o644))
_PLATFORMS = (("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64"))
_HEAD = """\
# Made by tools/krew.py with the archive that it names.
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: podium
spec:
  version: v{version}
  homepage: {home}
  shortDescription: Explain, simulate and protect what the scheduler does
  description: |
    Says what would happen to a pending pod and why, plays what happens to a cluster in virtual time, keeps snapshots
    and recordings of clusters, and deletes pods within their disruption budgets.
  caveats: |
    It needs uv or pipx, which fetch the Python package podium {version}.
  platforms:
"""
_PLATFORM = """\
  - selector:
      matchLabels:
        os: {os}
        arch: {arch}
    uri: {home}/releases/download/v{version}/kubectl-podium-{version}.tar.gz
    sha256: {sha256}
    bin: kubectl-podium
    files:
    - from: kubectl-podium
      to: .
    - from: LICENSE
      to: .
"""
HOME = "https://example.com/podium"
"""The location of releases; a fork names its own."""


def version() -> str:
    """Return the version in pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        return str(tomllib.load(stream)["project"]["version"])


def archive() -> bytes:
    """Return the plugin's files as an archive: equal bytes for equal files."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, mode in _FILES:
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def manifest(sha256: str) -> str:
    """Return the manifest for an archive with that checksum."""
    values = {"version": version(), "home": HOME, "sha256": sha256}
    platforms = (_PLATFORM.format(os=os, arch=arch, **values) for os, arch in _PLATFORMS)
    return _HEAD.format(**values) + "".join(platforms)


def main(arguments: list[str]) -> int:
    """Write both."""
    content = archive()
    MANIFEST.write_text(manifest(hashlib.sha256(content).hexdigest()), encoding="utf-8")
    print(f"wrote {MANIFEST.relative_to(ROOT)}")
    for folder in arguments:
        target = Path(folder) / f"kubectl-podium-{version()}.tar.gz"
        target.write_bytes(content)
        print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
