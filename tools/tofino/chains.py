# SPDX-License-Identifier: Apache-2.0
"""The longest chains of dependent steps of the profiles, from softswitch-p4c."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tofino import FOLDER, ROOT, STAGES, page, save

GOLDEN = FOLDER / "chains.json"


@dataclass(frozen=True)
class Chain:
    """A chain of dependent steps of one gress; `length` counts stages."""

    length: int
    steps: tuple[tuple[int, str], ...]
    """(stage, description) of the steps."""


def chains(profile: str) -> dict[str, Chain]:
    """Return the longest chain of each gress of a profile, such as `ingress`, or `edge.ingress` if it has several pipes.

    Exits if the profile does not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [
            os.environ.get("SOFTSWITCH_P4C", ROOT / "target" / "release" / "softswitch-p4c"),
            "--Wdisable",
            "--report",
            "-o",
            Path(folder) / "out.json",
            f"p4src/tna/{profile}.p4",
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"p4src/tna/{profile}.p4: does not compile: correct the program\n{done.stderr}")
    return parse(done.stdout + done.stderr)


def parse(report: str) -> dict[str, Chain]:
    """Return the chains in the text of `softswitch-p4c --report`, by gress."""
    found: dict[str, Chain] = {}
    parts = re.split(
        r"^((?:\w+\.)?(?:ingress|egress)): the longest chain of dependent steps needs (\d+) stages? at least$", report, flags=re.M
    )
    for gress, length, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        steps = re.findall(r"^ +(\d+)  (.+?)  \S+$", text, flags=re.M)
        found[gress] = Chain(int(length), tuple((int(stage), name) for stage, name in steps))
    return found


def write() -> None:
    """Write the lengths of the chains to the page and to chains.json."""
    profiles = {profile: chains(profile) for profile in STAGES}
    save(GOLDEN, {profile: {gress: chain.length for gress, chain in found.items()} for profile, found in profiles.items()})
    rows = [
        (f"`{profile}`", gress, chain.length, STAGES[profile])
        for profile, found in profiles.items()
        for gress, chain in found.items()
    ]
    page.write("chains", page.table(("profile", "gress", "longest chain", "stages of the chip"), *rows))
