"""docs/conformance.md: its text is written by hand, and what was measured stands between marks that the commands renew."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from corpus import Corpus
from tools import ROOT

if TYPE_CHECKING:
    from run import Finished

PAGE = ROOT / "docs" / "conformance.md"


def renew(blocks: Mapping[str, str]) -> None:
    """Replaces these blocks of the page, and leaves the others as they are."""
    text = PAGE.read_text()
    for name, block in blocks.items():
        begin, end = f"<!-- {name}: renewed by make -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{PAGE} has no place for {name}: put the lines '{begin}' and '{end}' where it belongs")
        text = pattern.sub(lambda _, put=f"{begin}\n{block}\n{end}": put, text)  # type: ignore[misc]
    PAGE.write_text(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rest(finished: Sequence[Finished], reasons: Mapping[str, Mapping[str, str]]) -> str:
    """What does not pass, by reason."""
    parts = []
    for done in finished:
        groups: dict[str, list[str]] = defaultdict(list)
        for outcome in done.failed():
            reason = reasons.get(done.check.name, {}).get(outcome.name)
            groups[reason or f"Not explained. Seen: `{outcome.seen}`"].append(f"`{outcome.name}`")
        if groups:
            rows = [(f"{reason}", ", ".join(names)) for reason, names in groups.items()]
            parts.append(f"{WHAT[done.check.name]}:\n\n{table(('why', 'samples'), rows)}")
    return "\n\n".join(parts) or "Nothing."


WHAT = {
    "stf": "STF tests that do not pass",
    "printed": "STF tests that do not pass with what p4c printed of their programs",
    "p4info": "P4Infos that differ",
    "errors": "Wrong programs that are accepted",
    "right_line": "Wrong programs whose error is shown on another line",
    "bmv_errors": "Programs that p4c's back end for BMv2 refuses and that are accepted",
    "stf_p4c_softswitch": "STF tests that do not pass with p4c on softswitch",
    "stf_own_bmv2": "STF tests that do not pass with softswitch-p4c on BMv2",
    "stf_p4c_bmv2": "STF tests that do not pass with p4c on BMv2",
}


def conformance(
    corpus: Corpus, finished: Sequence[Finished], reasons: Mapping[str, Mapping[str, str]], result: Mapping[str, int]
) -> dict[str, str]:
    rows = [
        ("STF tests that pass", "stf_passed", "stf_total"),
        ("STF tests that pass with what p4c printed of their programs", "printed_passed", "printed_total"),
        ("P4Infos that are equal", "p4info_equal", "p4info_total"),
        ("wrong programs that are refused", "errors_refused", "errors_total"),
        ("of those of which p4c names a line, an error is on it", "errors_right_line", "errors_with_line"),
        ("programs that p4c's back end for BMv2 refuses, refused too", "bmv_errors_refused", "bmv_errors_total"),
    ]
    shown = table(("what", "count", "of"), [(what, str(result[part]), str(result[total])) for what, part, total in rows])
    return {"counts": f"With p4c {corpus.version}:\n\n{shown}", "rest": rest(finished, reasons)}
