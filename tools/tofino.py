#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the longest chains of dependent steps of the profiles for Tofino to p4src/tna/chains.json and docs/tofino.md.

The compiler is target/release/softswitch-p4c, or SOFTSWITCH_P4C.

Example: tools/tofino.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHAINS = ROOT / "p4src" / "tna" / "chains.json"
PAGE = ROOT / "docs" / "tofino.md"
STAGES = {"tofino1": 12, "tofino2": 20}
"""Stages of a gress of each chip."""
BEGIN, END = "<!-- chains: written by make -->", "<!-- end of chains -->"


@dataclass(frozen=True)
class Chain:
    """A chain of dependent steps of one gress; `length` counts stages."""

    length: int
    steps: tuple[tuple[int, str], ...]
    """(stage, description) of the steps."""


def compiler() -> Path:
    return Path(os.environ.get("SOFTSWITCH_P4C", ROOT / "target" / "release" / "softswitch-p4c"))


def chains(profile: str) -> dict[str, Chain]:
    """Return the longest chain of each gress of a profile."""
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [
            compiler(),
            "--Wdisable",
            "--report",
            "-o",
            Path(folder) / "out.json",
            f"p4src/tna/{profile}.p4",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"tofino.py: {profile} does not compile: correct the program\n{done.stderr}")
    return parse(done.stdout + done.stderr)


def parse(report: str) -> dict[str, Chain]:
    """Return the chains in the text of `softswitch-p4c --report`, by gress."""
    found: dict[str, Chain] = {}
    parts = re.split(r"^(ingress|egress): the longest chain of dependent steps needs (\d+) stages? at least$", report, flags=re.M)
    for gress, length, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        steps = re.findall(r"^ +(\d+)  (.+?)  \S+$", text, flags=re.M)
        found[gress] = Chain(int(length), tuple((int(stage), name) for stage, name in steps))
    return found


def golden(profiles: dict[str, dict[str, Chain]]) -> str:
    """Return the text of chains.json."""
    lengths = {profile: {gress: chain.length for gress, chain in found.items()} for profile, found in profiles.items()}
    return json.dumps(lengths, indent=2) + "\n"


def block(profiles: dict[str, dict[str, Chain]]) -> str:
    """Return the table of docs/tofino.md."""
    lines = ["| profile | gress | longest chain | stages of the chip |", "| --- | --- | --- | --- |"]
    for profile, found in profiles.items():
        lines += [f"| `{profile}` | {gress} | {chain.length} | {STAGES[profile]} |" for gress, chain in found.items()]
    return "\n".join([BEGIN, *lines, END])


def main() -> int:
    if len(sys.argv) > 1:
        print((__doc__ or "").strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    profiles = {profile: chains(profile) for profile in STAGES}
    CHAINS.write_text(golden(profiles))
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"tofino.py: {PAGE} does not have the marks '{BEGIN}' and '{END}': add them")
    PAGE.write_text(before + block(profiles) + after)
    return 0


if __name__ == "__main__":
    sys.exit(main())
