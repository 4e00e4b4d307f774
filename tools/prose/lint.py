# SPDX-License-Identifier: Apache-2.0
"""The prose linter: holds Markdown, comments, docstrings and test names to the rules of ``docs/writing.md``.

Vale applies the rules in ``styles/Frontage``. It knows neither P4 nor the docstrings of attributes. Therefore this program extracts the
prose of every file into a Markdown shadow, runs Vale once over all shadows, and reports each finding at its line of the source.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from extract import Line, has_prose, prose, strings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VALE = ROOT / "build" / "vale"
MAX_MARKDOWN_COLUMNS = 120

_COMPARATIVES = "longer|more|less|fewer|later|earlier|better|worse|larger|smaller|higher|lower|faster|slower|different"
_NEGATED_NOUN = rf"(?:is|are|was|were) no (?!{_COMPARATIVES})[a-zA-Z]"
_TEST_NAME = re.compile(
    r"^\s*(?:async )?(?:def test_|fn )(?P<name>(?:who|whose|whom|what|that|of|whether|where|which|nobody|how_many)_\w+|\w*_(?:nobody|"
    + _NEGATED_NOUN.replace(" ", "_")
    + r")\w*)",
    re.MULTILINE,
)
_MESSAGE = re.compile(r"\b(?:" + _NEGATED_NOUN + r"\w*|nobody|unheard)")


class LintError(Exception):
    """A reason why the linter cannot run."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation of a rule at a line of a file."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


def lint(paths: Iterable[Path], vale: Path = VALE, root: Path = ROOT) -> list[Finding]:
    """Return the findings in these files, sorted by place. Raises LintError if Vale is missing or fails."""
    files = [path.resolve() for path in paths]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = [finding for file, text in texts.items() for finding in _own_rules(file.relative_to(root), text)]
    found += _vale({file.relative_to(root): prose(file, text) for file, text in texts.items()}, vale)
    return sorted(set(found))


def _own_rules(path: Path, text: str) -> Iterator[Finding]:
    """Rules about lines and identifiers, which Vale does not see."""
    if path.suffix == ".md":
        in_code = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                in_code = not in_code
            is_code = in_code or line.startswith("    ") or line.lstrip().startswith(("|", "["))
            if len(line) > MAX_MARKDOWN_COLUMNS and not is_code and " " in line[:MAX_MARKDOWN_COLUMNS].strip():
                yield Finding(
                    str(path), number, "LineLength", f"{len(line)} columns: write one sentence a line, below {MAX_MARKDOWN_COLUMNS}"
                )
    for text_line in strings(path, text):
        if match := _MESSAGE.search(text_line.text):
            yield Finding(
                str(path),
                text_line.number,
                "Message",
                f"'{match[0]}': write 'invalid X', 'unknown X', 'missing X' or 'X must be ...'",
            )
    if path.suffix in {".rs", ".py"}:
        for match in _TEST_NAME.finditer(text):
            number = text.count("\n", 0, match.start("name")) + 1
            yield Finding(str(path), number, "TestName", f"'{match['name']}': name subject, condition and result")


def _vale(sources: dict[Path, list[Line]], vale: Path) -> Iterator[Finding]:
    if not vale.exists():
        raise LintError(f"{vale}: no such program: build it with `make build/vale`")
    with tempfile.TemporaryDirectory() as folder:
        numbers: dict[str, list[int]] = {}
        for i, (path, lines) in enumerate(sources.items()):
            shadow = Path(folder) / f"{i}.md"
            text, numbers[str(path)] = _shadow(lines)
            shadow.write_text(text, encoding="utf-8")
        command = [str(vale), "--config", str(HERE / "vale.ini"), "--no-exit", "--output", "JSON", folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise LintError(f"{vale}: {result.stderr or result.stdout}")
        names = [str(path) for path in sources]
        for shadow_name, alerts in json.loads(result.stdout or "{}").items():
            path_name = names[int(Path(shadow_name).stem)]
            for alert in alerts:
                line = numbers[path_name][alert["Line"] - 1]
                yield Finding(path_name, line, alert["Check"].removeprefix("Frontage."), alert["Message"])


def _shadow(lines: list[Line]) -> tuple[str, list[int]]:
    """Return Markdown text with a blank line wherever a paragraph of prose ends, and the source line of each of its lines."""
    text: list[str] = []
    numbers: list[int] = []
    for line in lines:
        if not line.continues and text:
            text.append("")
            numbers.append(line.number)
        text.append(line.text)
        numbers.append(line.number)
    return "\n".join(text) + "\n", numbers or [1]


def tracked(places: Iterable[str], root: Path = ROOT) -> list[Path]:
    """Return the tracked files below these places whose prose is ours to write."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *places], cwd=root, capture_output=True, text=True, check=True).stdout
    excluded = [
        line for line in (HERE / "excluded.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
    ]
    files = [
        root / name
        for name in listed.split("\0")
        if name and not any(Path(name).match(pattern) or name.startswith(pattern) for pattern in excluded)
    ]
    return [file for file in files if has_prose(file) and file.is_file() and not file.is_symlink()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python tools/prose/lint.py docs controller/src")
    parser.add_argument("places", nargs="*", default=["."], help="files or folders; everything that is tracked if absent")
    parser.add_argument("--vale", type=Path, default=VALE, help="the Vale program (build/vale)")
    parser.add_argument("--summary", action="store_true", help="print findings per folder and rule instead of each one")
    options = parser.parse_args()
    try:
        findings = lint(tracked(options.places), options.vale)
    except LintError as error:
        print(f"lint.py: {error}", file=sys.stderr)
        return 2
    if options.summary:
        for (place, rule), count in sorted(Counter(("/".join(f.path.split("/")[:2]), f.rule) for f in findings).items()):
            print(f"{count:6} {place} {rule}")
    else:
        for finding in findings:
            print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
