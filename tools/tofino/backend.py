# SPDX-License-Identifier: Apache-2.0
"""Runs of p4c's open back end for Tofino, and how far they get."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tofino import ROOT

CHIPS = {
    "tofino1": ("tofino", "tna"),
    "tofino1quic": ("tofino", "tna"),
    "tofino2core": ("tofino2", "t2na"),
    "tofino2folded": ("tofino2", "t2na"),
    "tofino2full": ("tofino2", "t2na"),
    "tofino2": ("tofino2", "t2na"),
}
"""Target and architecture of each profile."""
CPU_LIMIT = 900
"""Seconds of processor time after which a run counts as refused.

A program that fits needs two minutes; the search for others may never end.
"""
LIMIT_REACHED = (-signal.SIGKILL, -signal.SIGXCPU, 128 + signal.SIGKILL, 128 + signal.SIGXCPU)
"""Exit statuses of a command, or of a shell around it, that reached the limit."""
PROPERTIES, PASS, PARSE_ERROR, ERROR = 0, 1, 2, 3
"""Kinds of events in the log of the back end."""


@dataclass(frozen=True)
class Refusal:
    """The first error of a run, and the pass that was under way."""

    last_pass: str
    error: str
    """The position, if the error has one, and the message."""


def compiler() -> list[str] | None:
    """Return the command in P4C_TOFINO; None if it is not set. Exits if it is not a program."""
    command = shlex.split(os.environ.get("P4C_TOFINO", ""))
    if command and shutil.which(command[0]) is None:
        raise SystemExit(f"P4C_TOFINO={command[0]}: not a program: correct or unset it")
    return command or None


def run(command: list[str], profile: str, folder: Path) -> Refusal | None:
    """Compile a profile into a folder; return why the back end refuses it, or None."""
    target, architecture = CHIPS[profile]
    options = ["--target", target, "--arch", architecture, "-g", "--enable-event-logger", "-o", str(folder)]
    # Events are complete only if the program ends by itself, so the file may be missing or cut off.
    done = subprocess.run(
        [*command, *options, f"p4src/tna/{profile}.p4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT)),
    )
    if done.returncode == 0:
        return None
    if done.returncode in LIMIT_REACHED:
        return refusal(events(folder), f"no result within {CPU_LIMIT} seconds of processor time")
    return refusal(events(folder), message(done.stdout + done.stderr))


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of a run in their order."""
    log = folder / "events.json"
    lines = log.read_text().splitlines() if log.exists() else []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            break  # the last line of a process that was killed
    return found


def refusal(log: Iterable[dict[str, Any]], otherwise: str) -> Refusal:
    """Return the first error of a run and its pass; without an error among the events, `otherwise` is the error."""
    last_pass, error, files = "(none)", None, []
    for event in log:
        kind = event.get("i")
        if kind == PASS and error is None:
            last_pass = event["n"]
        elif kind in (PARSE_ERROR, ERROR) and error is None:
            error = event
        elif kind == PROPERTIES:
            files = event["file_ids"]
    if error is None:
        return Refusal(last_pass, otherwise)
    return Refusal(last_pass, f"{position(error.get('si'), files)}{' '.join(error['m'].split())}")


def position(source: Any, files: list[str]) -> str:
    """Return `FILE:LINE: ` of an event, or nothing if the position is unknown."""
    first = source[0] if isinstance(source, list) and source else source
    if not first or first["f"] >= len(files):
        return ""
    path = (ROOT / files[first["f"]]).resolve()
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{first['l']}: "


def message(output: str) -> str:
    """Return the first line of a compiler's output that tells of an error, such as one of the compiler itself."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = (line for line in lines if "error:" in line or "Bug" in line)
    return next(telling, lines[-1] if lines else "no message")
