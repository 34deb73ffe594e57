"""The command `podium` in a process of its own."""

import os
import subprocess
from pathlib import Path

from tests.app import forked

START = "import sys; from podium.app.console.command import main; main(sys.argv[1:])"


def run(
    *args: str,
    code: str = START,
    given: str | None = None,
    folder: Path | None = None,
    real: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run the command, or other code with these arguments, and wait for its end; nothing is a terminal.

    A ``real`` process imports what it needs; another one has imported everything already. Standard input is what is
    ``given``, or this process's.
    """
    process = forked.start(
        code,
        *args,
        real=real,
        cwd=folder,
        stdin=None if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # No session of the developer answers here.
        env={**os.environ, "XDG_RUNTIME_DIR": os.devnull, **environment},
    )
    with process:
        output, errors = process.communicate(given)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
