# SPDX-License-Identifier: Apache-2.0
"""Write the log of one packet on softswitch, next to BMv2's log of the same packet, to docs/conformance.md.

Both switches run the same JSON, and log to the console at level `trace`. Needs BMv2's simple_switch_grpc (BMV2 or PATH), built with
-DENABLE_LOGGING_MACROS=ON; other builds log no packets.

Example:
  make packet-log BMV2=../behavioral-model/build/targets/simple_switch_grpc/simple_switch_grpc
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import re
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import report
import stf
from corpus import Sample
from frontage.p4.p4info import Pipeline, PipelineError
from peers import bmv2, softswitch
from target import Target, TargetError
from tools import ROOT, ToolError, own_compiler, version

PROGRAM = ROOT / "softswitch" / "pipeline" / "tests" / "programs" / "router.p4"
TEST = PROGRAM.with_suffix(".stf")
OPTIONS = ("--log-console", "-L", "trace")

_LINE = re.compile(r"\[[\d:.]+\] \[bmv2\] (?P<level>\[[A-Z]\]) \[thread \d+\] (?P<text>.*)")
_PACKET = re.compile(r"\[\d+\.\d+\] ")
_FOLDER = re.compile(r"(\S*/)(?=[\w.]+\(\d+\))")


class LogError(Exception):
    """A log without the packet."""


def lines(log: str) -> list[str]:
    """Return the lines about packets, without times, numbers of threads, and folders of the program."""
    found: list[str] = []
    inside = False
    for line in log.splitlines():
        matched = _LINE.match(line)
        if matched:
            inside = _PACKET.match(matched["text"]) is not None
            line = f"{matched['level']} {_FOLDER.sub('', matched['text'])}"
        # Keys and entries continue in lines without a head.
        if inside:
            found.append(line.rstrip())
    return found


def logged(target: Target, pipeline: Pipeline) -> list[str]:
    """Run the test on a switch, and return the lines of its log about packets. Raises LogError, TargetError, StfError."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        logging = replace(target, before=(*OPTIONS, *target.before), log=log)
        differences = asyncio.run(stf.differences(logging, pipeline, TEST))
        if differences:
            raise LogError(f"{target.name}: {TEST.name}: {differences[0]}")
        found = lines(log.read_text(errors="replace"))
    if not found:
        raise LogError(f"{target.name}: {target.binary}: no packet in its log: BMv2 must be built with -DENABLE_LOGGING_MACROS=ON")
    return found


def compare(peer: Target, work: Path) -> list[str]:
    """Compile the program, run it on both switches, and return the lines of both logs in one order.

    Each line begins with a mark: `-` BMv2 only, `+` softswitch only, a space for both. Raises LogError, TargetError, StfError,
    PipelineError, ToolError.
    """
    done, compiled, p4info = own_compiler().compile(Sample("router", PROGRAM, work, TEST), work)
    if done.status != 0:
        raise ToolError(done.first)
    pipeline = Pipeline.load(p4info, compiled)
    theirs, ours = (logged(target, pipeline) for target in (peer, softswitch()))
    return [line.rstrip() for line in difflib.Differ().compare(theirs, ours) if not line.startswith("?")]


def block(compared: list[str], bmv2_version: str) -> str:
    """Return the block of docs/conformance.md."""
    # Empty lines belong to the entry above them.
    count = Counter(line[0] for line in compared if line)
    counts = (
        f"Of these lines, both switches log {count[' ']}; "
        f"only BMv2 {bmv2_version} logs {count['-']} (`-`), and only softswitch {count['+']} (`+`):"
    )
    log = "\n".join(compared)
    return f"{counts}\n\n```diff\n{log}\n```"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        peer = bmv2()
        if peer is None:
            sys.exit("packet_log: missing simple_switch_grpc: set BMV2 or PATH")
        with tempfile.TemporaryDirectory() as work:
            compared = compare(peer, Path(work))
        report.renew({"packet-log": block(compared, version(peer.binary))})
    except (LogError, TargetError, stf.StfError, PipelineError, ToolError) as error:
        sys.exit(f"packet_log: {error}")


if __name__ == "__main__":
    main()
