# SPDX-License-Identifier: Apache-2.0
"""Writes the measured parts of docs/conformance.md, which stand between marks; the rest of the page is written by hand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from checks import Finished
from corpus import Corpus
from outcomes import Outcome
from tools import ROOT

PAGE = ROOT / "docs" / "conformance.md"


def renew(blocks: Mapping[str, str]) -> None:
    """Replace these blocks of the page."""
    text = PAGE.read_text()
    for name, block in blocks.items():
        begin, end = f"<!-- {name}: written by make -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{PAGE} missing marks of block {name}: add the lines '{begin}' and '{end}'")
        text = pattern.sub(lambda _, put=f"{begin}\n{block}\n{end}": put, text)  # type: ignore[misc]
    PAGE.write_text(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def failures(finished: Sequence[Finished], reasons: Mapping[str, Mapping[str, str]]) -> str:
    """Return tables of the failures, by reason."""
    parts = []
    for result in finished:
        failed = result.failed()
        if failed:
            text = by_reason("samples", failed, reasons.get(result.check.name, {}))
            parts.append(f"{TITLES[result.check.name]}:\n\n{text}")
    return "\n\n".join(parts) or "None."


def by_reason(title: str, failed: Sequence[Outcome], reasons: Mapping[str, str]) -> str:
    """Return a table of the reasons with their failed samples; `title` is the heading of the column of samples."""
    groups: dict[str, list[str]] = defaultdict(list)
    for outcome in failed:
        reason = reasons.get(outcome.name, f"Unexplained: `{outcome.seen}`")
        groups[reason].append(f"`{outcome.name}`")
    return table(("reason", title), [(reason, ", ".join(names)) for reason, names in groups.items()])


TITLES = {
    "stf": "Failing STF tests",
    "printed": "Failing STF tests with programs printed by p4c",
    "p4info": "Different P4Info",
    "psa_stf": "Failing STF tests of PSA",
    "psa_p4info": "Different P4Info of PSA",
    "psa_p4c_softswitch": "Failing STF tests of PSA with p4c on softswitch",
    "errors": "Invalid programs that are accepted",
    "right_line": "Invalid programs whose error is on another line",
    "bmv_errors": "Programs that p4c's back end for BMv2 rejects and the compiler accepts",
    "stf_p4c_softswitch": "Failing STF tests with p4c on softswitch",
    "stf_own_bmv2": "Failing STF tests with softswitch-p4c on BMv2",
    "stf_p4c_bmv2": "Failing STF tests with p4c on BMv2",
}


def conformance(
    corpus: Corpus, finished: Sequence[Finished], reasons: Mapping[str, Mapping[str, str]], result: Mapping[str, int]
) -> dict[str, str]:
    rows = [
        ("STF tests that pass", "stf_passed", "stf_total"),
        ("STF tests that pass with programs printed by p4c", "printed_passed", "printed_total"),
        ("equal P4Info", "p4info_equal", "p4info_total"),
        ("STF tests of PSA that pass", "psa_stf_passed", "psa_stf_total"),
        ("equal P4Info of PSA", "psa_p4info_equal", "psa_p4info_total"),
        ("rejected invalid programs", "errors_refused", "errors_total"),
        ("error on the line that p4c names, if it names one", "errors_right_line", "errors_with_line"),
        ("rejected programs of those that p4c's back ends for BMv2 reject", "bmv_errors_refused", "bmv_errors_total"),
    ]
    counts = table(("check", "passed", "of"), [(check, str(result[part]), str(result[total])) for check, part, total in rows])
    return {"counts": f"With p4c {corpus.version}:\n\n{counts}", "rest": failures(finished, reasons)}
