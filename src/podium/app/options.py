"""The options that several subcommands share."""

from __future__ import annotations

import click

files_option = click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    required=True,
    help="Manifests, YAML or JSON: a file, a directory of them, or - for standard input. May be repeated.",
)

output_option = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How the answer is printed.",
)

config_option = click.option(
    "--config", metavar="FILE", help="A KubeSchedulerConfiguration; without it, that of a default kube-scheduler."
)
