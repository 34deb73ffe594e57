"""The command `podium` in a process of its own."""

import os
import subprocess
import sys

START = "import sys; from podium.app.console.command import main; main(sys.argv[1:])"


def run(*args: str, code: str = START, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command, or other code with these arguments, and wait for its end; nothing is a terminal."""
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        # No session of the developer answers here.
        env={**os.environ, "XDG_RUNTIME_DIR": os.devnull, **environment},
    )
