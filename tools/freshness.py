# SPDX-License-Identifier: Apache-2.0
"""Find pages of results that are older than the code that they measure.

The last line of a measured page names the commit of the measurement; --stamp writes it. A page is too old if more than LIMIT commits since
then changed the folders that the page measures. Pages without this line, and those with a commit that is not in the history, are listed
and pass.

Examples: python tools/freshness.py
          python tools/freshness.py --stamp docs/results/qdsr.md
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 50
"""Maximum number of commits that change measured code between two measurements."""
STAMP = re.compile(r"\n*^Measured at commit `(?P<commit>[0-9a-f]{12})`(?: with local changes)?\.\n\Z", re.MULTILINE)
EXCLUDED = (":(exclude)*.md", ":(exclude)*/tests/*")
"""Files in measured folders that do not affect measurements."""

SWITCH = ("p4src", "softswitch/pipeline", "softswitch/queue", "softswitch/switch")
TESTBED = (*SWITCH, "controller/src", "mininet/src/frontage_testbed")
QUIC = ("host-agents/cclb7-quic", "host-agents/handoff", "host-agents/quic", "host-agents/quic-signals", "host-agents/real-server")
SIMULATION = ("p4src", "softswitch/pipeline", "softswitch/queue", "experiments/simulator", "experiments/transport",
              "experiments/src", "controller/src/frontage/state", "host-agents/cookie")  # fmt: skip
PLACEMENT = ("experiments/src/frontage_sim/auspice", "controller/src/frontage/mapping/placement", "controller/records/src")


@dataclass(frozen=True)
class Measurement:
    """The origin of a page."""

    command: str
    """The command that writes the page."""
    folders: tuple[str, ...]
    """The code that the page measures."""


PAGES = {
    "docs/performance.md": Measurement(
        "make bench performance", (*SWITCH, *QUIC, "host-agents/cclb7", "experiments/simulator", "bench")
    ),
    "docs/results/aifo.md": Measurement("make experiments ONLY=aifo", (*SIMULATION, "experiments/aifo")),
    "docs/results/artemis.md": Measurement(
        "make artemis", (*TESTBED, "host-agents/dispatcher", "host-agents/naming", "mininet/src/frontage_demo/artemis")
    ),
    "docs/results/auspice.md": Measurement("make experiments ONLY=auspice", (*PLACEMENT, "experiments/auspice")),
    "docs/results/auspice-supercluster.md": Measurement(
        "make records", ("controller/records/src", "mininet/src/frontage_demo/supercluster")
    ),
    "docs/results/cloudcookie.md": Measurement("make experiments ONLY=cloudcookie", (*SIMULATION, "experiments/cloudcookie")),
    "docs/results/frontage.md": Measurement(
        "make frontage", (*TESTBED, *QUIC, "host-agents/dispatcher", "host-agents/naming", "mininet/src/frontage_demo/everything")
    ),
    "docs/results/mobile.md": Measurement(
        "make mobile", ("controller/records/src", "host-agents/mobile", "mininet/src/frontage_demo/mobile")
    ),
    "docs/results/placement.md": Measurement("make experiments ONLY=placement", (*PLACEMENT, "experiments/placement")),
    "docs/results/qdsr.md": Measurement(
        "make bench qdsr ONLY=qdsr", (*TESTBED, *QUIC, "mininet/src/frontage_demo/handoff", "bench/qdsr.py")
    ),
    "docs/results/quicsocks.md": Measurement(
        "make quicsocks",
        (*TESTBED, "host-agents/quicsocks", "host-agents/quicsocks-client", "mininet/src/frontage_demo/quicsocks"),
    ),
    "docs/results/rivals.md": Measurement("make experiments ONLY=rivals", (*SIMULATION, "experiments/rivals")),
    "docs/results/studies.md": Measurement("make experiments ONLY=studies", (*SIMULATION, "experiments/studies")),
}


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return the output of a git command."""
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def stamp(page: str, root: Path = ROOT) -> None:
    """Write the current commit into a page. Raises KeyError for a page that does not measure anything."""
    folders = PAGES[page].folders
    changes = " with local changes" if git("status", "--porcelain", "--", *folders, *EXCLUDED, root=root) else ""
    line = f"Measured at commit `{git('rev-parse', '--short=12', 'HEAD', root=root)}`{changes}."
    text = STAMP.sub("", (root / page).read_text()).rstrip()
    (root / page).write_text(f"{text}\n\n{line}\n")


def commit_of(text: str) -> str | None:
    """Return the commit of a page's measurement, or None for a page without a stamp."""
    found = STAMP.search(text)
    return found["commit"] if found else None


def is_known(commit: str, root: Path = ROOT) -> bool:
    """Return true if a commit is an ancestor of the current one."""
    ancestor = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(ancestor, cwd=root, capture_output=True, check=False).returncode == 0


def stamped(root: Path) -> Iterator[tuple[str, Measurement, str]]:
    """Yield each page with a stamp: its path, origin and commit."""
    for page, measurement in PAGES.items():
        commit = commit_of((root / page).read_text())
        if commit is not None:
            yield page, measurement, commit


def unknown(root: Path = ROOT) -> Iterator[str]:
    """Yield a message for each page whose commit is not in the history, for example because that was rewritten."""
    for page, measurement, commit in stamped(root):
        if not is_known(commit, root):
            yield f"{page}: measured at {commit}, which is not in this history: run `{measurement.command}`"


def problems(root: Path = ROOT, limit: int = LIMIT) -> Iterator[str]:
    """Yield a message for each page that is too old."""
    for page, measurement, commit in stamped(root):
        if not is_known(commit, root):
            continue
        changes = int(git("rev-list", "--count", f"{commit}..HEAD", "--", *measurement.folders, *EXCLUDED, root=root))
        if changes > limit:
            yield f"{page}: {changes} commits changed the measured code since {commit}: run `{measurement.command}`"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stamp", nargs="+", choices=PAGES, metavar="PAGE", help="write the current commit into these pages")
    if pages := parser.parse_args().stamp:
        for page in pages:
            stamp(page)
        return 0
    if git("rev-parse", "--is-shallow-repository") == "true":
        print("freshness.py: skipped: this clone does not contain the commits of the measurements")
        return 0
    if unstamped := [page for page in PAGES if commit_of((ROOT / page).read_text()) is None]:
        print(f"freshness.py: measured before pages named their commit: {', '.join(unstamped)}")
    for notice in unknown():
        print(f"freshness.py: {notice}")
    found = list(problems())
    for problem in found:
        print(problem)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
