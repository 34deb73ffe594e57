"""Publication of a built site as the only commit of a branch, for GitHub Pages.

`python3 tools/dev.py site --publish REMOTE` builds and pushes it. The branch `gh-pages` of the remote holds nothing
else and is replaced each time, since the documents have their own history.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

BRANCH = "gh-pages"


def publish(folder: Path, remote: str, repository: Path) -> str:
    """Push the folder to a repository's remote; return the commit. Raises CalledProcessError if git fails."""
    with tempfile.TemporaryDirectory() as scratch:
        # A separate index keeps the user's staged changes.
        environment = {**os.environ, "GIT_INDEX_FILE": str(Path(scratch) / "index")}

        def git(*arguments: str) -> str:
            command = ("git", *arguments)
            done = subprocess.run(command, cwd=repository, env=environment, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        git("--work-tree", str(folder.resolve()), "add", "--all", "--force", ".")
        of = git("rev-parse", "--short", "HEAD")
        commit = git("commit-tree", git("write-tree"), "-m", f"The site of {of}")
        git("push", "--force", "--quiet", remote, f"{commit}:refs/heads/{BRANCH}")
    return commit


def main(folder: str, remote: str) -> int:
    """Publish; return 1 if git fails."""
    try:
        commit = publish(Path(folder), remote, Path.cwd())
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr, end="")
        return 1
    print(f"{remote} {BRANCH}: {commit}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
