# SPDX-License-Identifier: Apache-2.0
"""Check the subject lines of commits: ``area: imperative summary`` in at most 72 characters."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_SUBJECT = 72
# The last commit before the rule. History from here on is checked.
BASELINE = "c4078e02683af0e10d448ba20a1526d388a3f7f8"

_SUBJECT = re.compile(r"^(?P<areas>[a-z0-9][a-z0-9_./-]*(?:, ?[a-z0-9][a-z0-9_./-]*)*): (?P<verb>[a-z][a-z-]*)\b.*[^.\s]$")
# Words that end like a participle or a third person but are imperatives.
_IMPERATIVES = frozenset(
    {
        "address",
        "pass",
        "process",
        "focus",
        "bypass",
        "compress",
        "discuss",
        "express",
        "access",
        "guess",
        "miss",
        "press",
        "stress",
        "embed",
        "feed",
        "need",
        "shed",
        "speed",
        "bring",
        "string",
        "ping",
    }
)
_NOT_VERBS = frozenset(
    {
        "a",
        "an",
        "the",
        "that",
        "what",
        "who",
        "whose",
        "which",
        "of",
        "one",
        "two",
        "three",
        "no",
        "nobody",
        "some",
        "all",
        "each",
        "new",
        "its",
    }
)


def problem(subject: str) -> str | None:
    """Return what is wrong with a subject line, or None. Merges, reverts and fixups of git's own are accepted."""
    if re.match(r"^(Merge|Revert|fixup!|squash!) ", subject):
        return None
    if len(subject) > MAX_SUBJECT:
        return f"{len(subject)} characters: shorten it to {MAX_SUBJECT}"
    match = _SUBJECT.match(subject)
    if not match:
        return "write `area: imperative summary`, in lower case, without a full stop"
    verb = match["verb"]
    if verb in _NOT_VERBS or (verb.endswith(("ed", "ing", "s")) and verb not in _IMPERATIVES):
        return f"'{verb}' is not an imperative: write what the commit does, for example 'add', 'rename', 'fix'"
    return None


def subjects(revisions: str) -> list[tuple[str, str]]:
    """Return (abbreviated hash, subject) of the commits in a range such as ``main..HEAD``."""
    command = ["git", "log", "--no-merges", "--format=%h %s", revisions]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1] if " " in line else "") for line in lines]


def default_range() -> str | None:
    """Return the commits since the baseline, or None where the history does not reach back so far (a shallow clone)."""
    known = subprocess.run(["git", "merge-base", "--is-ancestor", BASELINE, "HEAD"], cwd=ROOT, capture_output=True, check=False)
    return f"{BASELINE}..HEAD" if known.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python tools/prose/commits.py main..HEAD")
    parser.add_argument("range", nargs="?", help="the commits to check; since the rule exists if absent")
    revisions = parser.parse_args().range or default_range()
    if revisions is None:
        print("commits.py: skipped: this clone does not contain the commits to check")
        return 0
    bad = [(commit, subject, what) for commit, subject in subjects(revisions) if (what := problem(subject))]
    for commit, subject, what in bad:
        print(f"{commit}: {subject!r}: {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
