"""`kubectl podium`: kubectl runs kubectl-podium, and kubectl_complete-podium for completions.

Source: k8s.io/kubectl (pkg/cmd/plugin), and cobra for the format of completions.
"""

from __future__ import annotations

import sys

from podium.app.console import command
from podium.app.console.command import KUBECTL_PLUGIN

# Cobra's ShellCompDirectiveNoFileComp, and its ShellCompDirectiveDefault.
_NO_FILES, _FILES = 4, 0


def main() -> None:
    """Run the command line under kubectl's name; without files it reads the cluster of the current context."""
    command.main(name=KUBECTL_PLUGIN)


def complete() -> None:
    """Print the completions of the last argument, a line each, and whether files are possible."""
    import click
    from click.shell_completion import ShellComplete

    *before, incomplete = sys.argv[1:] or [""]
    found = ShellComplete(command.podium, {}, KUBECTL_PLUGIN, "").get_completions(before, incomplete)
    # The value of an option may be a file's name, too.
    takes_value = bool(before) and before[-1].startswith("-")
    takes_files = takes_value or any(item.type in ("file", "dir") for item in found)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_FILES if takes_files else _NO_FILES}")
