# SPDX-License-Identifier: Apache-2.0
"""Writes `options.json`: the options of p4c and BMv2, which the command lines of softswitch accept.

python3 conformance/option_lists.py [--check]

The programs are those of the other comparisons (`tools.py`). The lists of programs that are missing stay as they are.
With --check, nothing is written, and a difference is a failure.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tools import TIMEOUT, peer

FILE = Path(__file__).with_name("options.json")


@dataclass(frozen=True)
class Option:
    names: tuple[str, ...]
    """The spellings, with hyphens."""
    value: str
    """`none`, `required` or `optional`."""


def boost(text: str) -> Iterator[Option]:
    """Yield the options in the help of Boost's parser, which BMv2 uses."""
    for line in text.splitlines():
        if found := re.match(r"  (?:(-\w) \[ )?(--[\w-]+)(?: \])?( \[=arg| arg)?", line):
            short, long, value = found.groups()
            kind = {None: "none", " arg": "required"}.get(value, "optional")
            yield Option((short, long) if short else (long,), kind)


def p4c(text: str) -> Iterator[Option]:
    """Yield the options in the help of p4c's own parser."""
    for line in text.splitlines():
        if line.startswith("-"):
            label = re.split(r"\s{2,}", line)[0]
            name, value = re.match(r"(-[\w-]+)(.*)", label).groups()  # type: ignore[union-attr]
            yield Option((name,), "optional" if value.startswith("[=") else "required" if value else "none")


def argparse_help(text: str) -> Iterator[Option]:
    """Yield the options in the help of Python's argparse, which p4c's driver uses."""
    for line in text.splitlines():
        if line.startswith("  -"):
            parts = [part.split(maxsplit=1) for part in re.split(r"\s{2,}", line.strip())[0].split(", ")]
            value = parts[-1][1] if len(parts[-1]) > 1 else ""
            kind = "optional" if value.startswith("[") else "required" if value else "none"
            yield Option(tuple(part[0] for part in parts), kind)


PROGRAMS: dict[str, tuple[str, Callable[[str], Iterator[Option]]]] = {
    "p4c": ("P4C_DRIVER", argparse_help),
    "p4c-bm2-ss": ("P4C_BM2", p4c),
    "simple_switch": ("SIMPLE_SWITCH", boost),
    "simple_switch_grpc": ("BMV2", boost),
}
"""Each program with the variable that names another path, and the reader of its help."""


def options(name: str) -> list[Option] | None:
    """Return the options of a program, sorted by name, or None if the program is missing."""
    variable, read = PROGRAMS[name]
    path = peer(variable, name)
    if path is None or "softswitch" in path.name:
        return None
    done = subprocess.run([path, "--help"], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    found = sorted(set(read(done.stdout + done.stderr)), key=lambda option: (option.names[-1].lstrip("-").lower(), option.names))
    if not found:
        raise SystemExit(f"{path}: no options in the output of --help: {done.stderr.strip()[:200]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a list differs")
    check = parser.parse_args().check
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    lists = dict(known)
    for name in PROGRAMS:
        found = options(name)
        if found is None:
            print(f"{name}: not found: its list stays as it is")
        else:
            lists[name] = [asdict(option) | {"names": list(option.names)} for option in found]
            print(f"{name}: {len(found)} options" + (", as listed" if lists[name] == known.get(name) else ", changed"))
    if check:
        return 0 if lists == known else 1
    rows = {name: ",\n    ".join(json.dumps(option) for option in lists[name]) for name in sorted(lists)}
    text = ",\n".join(f"  {json.dumps(name)}: [\n    {row}\n  ]" for name, row in rows.items())
    FILE.write_text(f"{{\n{text}\n}}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
