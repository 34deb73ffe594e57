"""The command: simulate the part of the trace once for each variant, and print the tables."""

from __future__ import annotations

import argparse

from tools.rescheduling_study.machines import RULES
from tools.rescheduling_study.study import RESCHEDULERS, Part, play
from tools.rescheduling_study.tables import summary, would_evict

_DAY = 86_400


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(prog="python -m tools.rescheduling_study", description=__doc__)
    parser.add_argument("--nodes", required=True, help="the trace's nodes.csv")
    parser.add_argument("--pods", required=True, help="the trace's pods.csv")
    parser.add_argument("--last", type=int, default=2_000, help="play so many pods, those that come last")
    parser.add_argument("--scale-nodes", type=float, default=0.02, help="on such a share of the nodes")
    parser.add_argument("--speed-up", type=float, default=8, help="so many times as fast")
    parser.add_argument("--days", type=float, default=0.9, help="for so long")
    parser.add_argument("--packing", action="store_true", help="with a scheduler that fills nodes up (MostAllocated)")
    parser.add_argument("--only", nargs="*", help="only some of: off, " + ", ".join((*RESCHEDULERS, *RULES)))
    args = parser.parse_args()
    part = Part(args.nodes, args.pods, args.last, args.scale_nodes, args.speed_up, int(args.days * _DAY))
    names = args.only or ["off", *RESCHEDULERS, *RULES]
    runs = []
    for name in names:
        runs.append(play(name, part, packs=args.packing))
        print(f"{name}: {runs[-1].cpu_seconds:.0f} CPU seconds", flush=True)
    print()
    print(summary(runs))
    if runs[0].name == "off":
        print(would_evict(runs[0]))


main()
