# SPDX-License-Identifier: Apache-2.0
"""Check that every source file names its licence, or add the line where it is missing.

Example: python tools/spdx.py --fix
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENCE = "Apache-2.0"
COMMENTS = {".rs": "//", ".p4": "//", ".c": "//", ".h": "//", ".cc": "//", ".go": "//", ".mjs": "//", ".py": "#"}
# Inputs of tests, in which a line more would change what the test expects, and definitions of other projects.
EXCLUDED = (
    "softswitch/compiler/tests/",
    "softswitch/pipeline/tests/programs/",
    "softswitch/switch/proto/",
    "softswitch/stf/tests/",
)
# The licence has to be among the first lines: a shebang and an encoding may precede it.
FIRST_LINES = 5


def sources() -> list[Path]:
    """Return the tracked source files that have to name the licence."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [
        name
        for name in listed.split("\0")
        if Path(name).suffix in COMMENTS and not (name.startswith(EXCLUDED) and not name.endswith(".rs"))
    ]
    return [ROOT / name for name in names if (ROOT / name).is_file() and (ROOT / name).stat().st_size]


def names_licence(text: str) -> bool:
    """Return whether the first lines contain an SPDX identifier."""
    return any("SPDX-License-Identifier:" in line for line in text.splitlines()[:FIRST_LINES])


def with_licence(text: str, suffix: str) -> str:
    """Return the text with an SPDX line before everything but a shebang."""
    line = f"{COMMENTS[suffix]} SPDX-License-Identifier: {LICENCE}\n"
    if text.startswith("#!") and suffix == ".py":
        shebang, _, rest = text.partition("\n")
        return f"{shebang}\n{line}{rest}"
    return line + text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="add the missing lines")
    fix = parser.parse_args().fix
    missing = [file for file in sources() if not names_licence(file.read_text(encoding="utf-8"))]
    for file in missing:
        if fix:
            file.write_text(with_licence(file.read_text(encoding="utf-8"), file.suffix), encoding="utf-8")
        else:
            print(f"{file.relative_to(ROOT)}:1: missing SPDX-License-Identifier: run `python tools/spdx.py --fix`")
    return 1 if missing and not fix else 0


if __name__ == "__main__":
    sys.exit(main())
