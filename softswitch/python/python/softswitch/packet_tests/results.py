# SPDX-License-Identifier: Apache-2.0
"""Results of tests: one JSON object a line while they run, a JUnit file and a summary at the end."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

OUTCOMES = ("passed", "failed", "skipped")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 excludes (section 2.2)."""


@dataclass(frozen=True)
class Record:
    """A test that is planned, or that passed, failed or was skipped. `detail` is a stack trace or a reason."""

    outcome: str
    test: str
    seconds: float = 0.0
    detail: str = ""

    def __str__(self) -> str:
        line = f"{self.outcome:7} {self.seconds:6.2f} s  {self.test}"
        if self.outcome == "skipped":
            return f"{line}: {self.detail}"
        return f"{line}\n{self.detail}" if self.detail else line


def append(file: Path, record: Record) -> None:
    """Add a record to a file of results."""
    with file.open("a") as results:
        results.write(json.dumps(asdict(record)) + "\n")


def read(file: Path) -> list[Record]:
    """Return the results in a file. A planned test that did not end counts as failed."""
    if not file.exists():
        return []
    records = [Record(**json.loads(line)) for line in file.read_text().splitlines()]
    ended = [record for record in records if record.outcome in OUTCOMES]
    missing = Counter(record.test for record in records if record.outcome == "planned")
    missing -= Counter(record.test for record in ended)
    return ended + [Record("failed", test, detail="the test did not end") for test in missing.elements()]


def summary(records: Iterable[Record]) -> dict[str, int]:
    """Return the number of tests by outcome."""
    found = Counter(record.outcome for record in records)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def write_junit(file: Path, suite: str, records: list[Record]) -> None:
    """Write the results as JUnit XML, which CI systems read."""
    counts = summary(records)
    totals = {"tests": str(len(records)), "failures": str(counts["failed"]), "skipped": str(counts["skipped"]), "errors": "0"}
    totals["time"] = f"{sum(record.seconds for record in records):.3f}"
    root = ElementTree.Element("testsuites", totals)
    parent = ElementTree.SubElement(root, "testsuite", {"name": suite, **totals})
    for record in sorted(records, key=lambda record: record.test):
        module, _, name = record.test.rpartition(".")
        case = ElementTree.SubElement(parent, "testcase", classname=module, name=name, time=f"{record.seconds:.3f}")
        detail = _NOT_IN_XML.sub("\ufffd", record.detail)
        if record.outcome == "failed":
            last = detail.strip().splitlines()[-1:]
            ElementTree.SubElement(case, "failure", message="".join(last)).text = detail
        elif record.outcome == "skipped":
            ElementTree.SubElement(case, "skipped", message=detail)
    file.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
