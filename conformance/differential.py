# SPDX-License-Identifier: Apache-2.0
"""Send the same random packets through softswitch and BMv2, with the same program, JSON and random table entries.

The outputs are compared: for each packet the ports and all bytes, and finally all counters. Needs BMv2's
simple_switch_grpc (BMV2 or PATH) and, for all programs except frontage.p4, P4C, a checkout of github.com/p4lang/p4c.
The seed determines everything. Each difference is written with its packet and entries to
build/conformance/differential.

With --programs random, the programs are random, too, and both compilers take part.

Examples:
  make differential PACKETS=100000 SEED=1
  make differential PROGRAMS=random COUNT=100 SEED=1
  P4C=../p4c conformance/differential.py --packets 2000 --seed 7 --only ternary2-bmv2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import explained
import random_rounds
import report
from checks import Checks
from corpus import Corpus, CorpusError, Sample
from data_centre import SITES
from explained import ExplainedError
from frontage.p4.p4info import PipelineError
from peers import NO_BMV2, bmv2, softswitch
from rounds import Difference, Restrictions, Round
from target import Target, TargetError
from tools import ROOT, ToolError, own_compiler, version

BUILD = ROOT / "build" / "conformance" / "differential"
FRONTAGE = "frontage"
PACKETS_PER_ROUND = 1000
"""Packets with the same entries, on freshly started switches."""

PROGRAMS = {
    FRONTAGE: "this project's program; half of the rounds with the entries of a data centre (TCP, QUIC)",
    "fabric_20190420/fabric": "a data-centre fabric: ternary keys, selectors, multicast, MPLS, tunnels",
    "omec/up4": "a mobile core: ranges, selectors, tunnels, counters",
    "ternary2-bmv2": "ternary keys, a header stack",
    "basic_routing-bmv2": "longest prefixes, a checksum",
    "table-entries-range-bmv2": "ranges, constant entries",
    "table-entries-optional-bmv2": "optional keys, constant entries",
    "issue1097-2-bmv2": "a register written in ingress and in egress",
    "header-stack-ops-bmv2": "header stacks, pushed and popped",
    "issue561-bmv2": "stacks of header unions",
    "checksum1-bmv2": "checksums over varbit options",
    "v1model-special-ops-bmv2": "clone, resubmit, recirculate, multicast",
}
"""The programs and the features that they test. The first gets a third of all packets."""

RESTRICTIONS = {
    "fabric_20190420/fabric": Restrictions(empty_tables=("FabricIngress.spgw_ingress.dl_sess_lookup",)),
    "omec/up4": Restrictions(empty_tables=("PreQosPipe.sessions_uplink",)),
    "header-stack-ops-bmv2": Restrictions(cut=False),
    "v1model-special-ops-bmv2": Restrictions(fixed_defaults=("egress.send_frame",)),
}
"""The first three programs would read fields of invalid headers. Their value is undefined (P4_16 specification,
"Reading uninitialized values"): softswitch reads zero, and BMv2 reads an earlier packet's value. The last one would
recirculate every packet without end."""


@dataclass
class Tally:
    packets: int = 0
    left: int = 0
    """Frames sent by the switches."""
    differences: list[Difference] = field(default_factory=list)


def samples(only: str | None) -> list[Sample]:
    found = []
    for name in PROGRAMS:
        if only not in (None, name):
            continue
        if name == FRONTAGE:
            source = ROOT / "p4src" / "v1model" / "frontage.p4"
            found.append(Sample(name, source, BUILD, source.with_suffix(".stf")))
            continue
        corpus = Corpus.find(os.environ.get("P4C", ""))
        found += [sample for sample in corpus.v1model() if sample.name == name]
    if not found:
        raise CorpusError(f"unknown program {only}: use {', '.join(PROGRAMS)}")
    return found


def _shares(names: list[str], packets: int) -> dict[str, int]:
    """Return the number of packets for each program: a third for this project's, unless it is the only one."""
    others = [name for name in names if name != FRONTAGE]
    of_ours = packets // 3 if others else packets
    of_others = packets - of_ours if FRONTAGE in names else packets
    return {name: of_ours if name == FRONTAGE else -(-of_others // len(others)) for name in names}


async def run(
    peers: Sequence[Target], program: tuple[Path, Path], name: str, seed: int, packets: int, progress: Progress, task: TaskID
) -> Tally:
    tally = Tally()
    # For this project's program, every other round uses random entries.
    sites = cycle([each for site in SITES for each in (site, None)] if name == FRONTAGE else [None])
    rounds = (packets + PACKETS_PER_ROUND - 1) // PACKETS_PER_ROUND
    for number in range(rounds):
        count = min(PACKETS_PER_ROUND, packets - number * PACKETS_PER_ROUND)
        site = next(sites)
        one = Round(name, program, seed * 1000 + number, count, site, RESTRICTIONS.get(name, Restrictions()))
        result = await one.run(peers, lambda done: progress.advance(task, done))
        tally.packets += one.packets
        tally.left += result.left
        tally.differences += result.differences
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=100_000, help="number of packets for all programs together (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all random choices (%(default)s)")
    parser.add_argument("--only", metavar="PROGRAM", help="run only this program; does not write files")
    parser.add_argument("--programs", choices=("known", "random"), default="known", help="the programs to run (%(default)s)")
    parser.add_argument("--count", type=int, default=100, help="number of random programs (%(default)s)")
    args = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    try:
        if args.programs == "random":
            sys.exit(random_rounds.compare(args.count, args.seed, BUILD / "random", console))
        sys.exit(compare(args.packets, args.seed, args.only, console))
    except (CorpusError, ToolError, TargetError, PipelineError, ExplainedError) as error:
        sys.exit(f"differential: {error}")


def compare(packets: int, seed: int, only: str | None, console: Console) -> int:
    peer = bmv2()
    if peer is None:
        console.print(NO_BMV2)
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    checks = Checks(own_compiler(), BUILD, BUILD)
    chosen = samples(only)
    shares = _shares([sample.name for sample in chosen], packets)
    tallies: dict[str, Tally] = {}
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for sample in chosen:
            done, compiled, p4info = checks.compiler.compile(sample, BUILD)
            if done.status != 0:
                raise ToolError(f"{sample.name} does not compile: {done.first}")
            task = progress.add_task(sample.name, total=shares[sample.name])
            tally = asyncio.run(
                run((softswitch(), peer), (compiled, p4info), sample.name, seed, shares[sample.name], progress, task)
            )
            tallies[sample.name] = tally
    return _report(tallies, peer, seed, only, console)


def _report(tallies: dict[str, Tally], peer: Target, seed: int, only: str | None, console: Console) -> int:
    reasons = explained.load().get("differential", {})
    unexplained = 0
    for name, tally in tallies.items():
        console.print(f"{name}: {tally.packets} packets, {tally.left} frames sent, {len(tally.differences)} differences")
        file = BUILD / f"{name.replace('/', '__')}.txt"
        file.write_text("\n".join(str(difference) for difference in tally.differences))
        if tally.differences and name not in reasons:
            unexplained += len(tally.differences)
            console.print(
                f"{name}: {file.relative_to(ROOT)} lists them; the first:\n{tally.differences[0]}", style="red", markup=False
            )
    if only is None:
        total = sum(tally.packets for tally in tallies.values())
        differ = sum(len(tally.differences) for tally in tallies.values())
        result = {"packets": total, "differences": differ, "unexplained": unexplained, "seed": seed}
        (BUILD / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        rows = [
            (
                f"`{name}`",
                PROGRAMS[name],
                f"{tally.packets:,}",
                f"{tally.left:,}",
                str(len(tally.differences)),
                reasons.get(name, ""),
            )
            for name, tally in tallies.items()
        ]
        head = ("program", "features", "packets", "frames sent", "differences", "reason")
        summary = f"Against BMv2 {version(peer.binary)}, seed {seed}: {total:,} packets, {differ} differences."
        report.renew({"differential": f"{summary}\n\n{report.table(head, rows)}"})
    return 1 if unexplained else 0


if __name__ == "__main__":
    main()
