"""The checks against p4c's samples. Each gives the samples it is about and what became of each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from corpus import Corpus, Sample, error_lines, read
from tools import Compiler, run

OUR_ERROR = re.compile(r"^(?:.*/)?([^/\s:]+\.p4):(\d+):\d+: error: ", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    name: str
    passed: bool
    seen: str = ""
    """What was seen where it did not pass, in a line."""


@dataclass(frozen=True)
class Check:
    name: str
    """As in explained.toml."""
    total: str
    """The result's key of how many samples there are."""
    passed: str
    """The result's key of how many of them pass."""
    samples: Callable[[Corpus], list[Sample]]
    check: Callable[[Sample], Outcome]


class Checks:
    """With our compiler, our STF runner, and a folder for what they make."""

    def __init__(self, compiler: Compiler, stf: Path, work: Path):
        self.compiler = compiler
        self.stf = stf
        self.work = work

    def all(self) -> list[Check]:
        with_line = partial(filter, error_lines)
        return [
            Check("stf", "stf_total", "stf_passed", Corpus.stf_pairs, self.stf_passes),
            Check("printed", "printed_total", "printed_passed", Corpus.printed, self.stf_passes),
            Check("p4info", "p4info_total", "p4info_equal", Corpus.with_p4info, self.p4info_equals),
            Check("errors", "errors_total", "errors_refused", Corpus.wrong, self.is_refused),
            Check(
                "right_line",
                "errors_with_line",
                "errors_right_line",
                lambda c: list(with_line(c.wrong())),
                self.is_refused_on_its_line,
            ),
            Check("bmv_errors", "bmv_errors_total", "bmv_errors_refused", Corpus.wrong_for_bmv2, self.is_refused),
        ]

    def stf_passes(self, sample: Sample) -> Outcome:
        done, json, _ = self.compiler.compile(sample, self.work)
        if done.status == 0:
            done = run(self.stf, json, sample.stf)
        return Outcome(sample.name, done.status == 0, done.first)

    def p4info_equals(self, sample: Sample) -> Outcome:
        done, _, p4info = self.compiler.compile(sample, self.work)
        # As with p4c, it is there also if only the target cannot run the program.
        if not p4info.exists():
            return Outcome(sample.name, False, done.first)
        difference = p4info_difference(read(sample.p4info), read(p4info))
        return Outcome(sample.name, difference is None, difference or "")

    def is_refused(self, sample: Sample) -> Outcome:
        done, _, _ = self.compiler.compile(sample, self.work)
        # Anything but the compiler's own "no" is a crash.
        return Outcome(sample.name, done.status == 1, "accepted" if done.status == 0 else done.first)

    def is_refused_on_its_line(self, sample: Sample) -> Outcome:
        done, _, _ = self.compiler.compile(sample, self.work)
        wanted = error_lines(sample)
        ours = {int(line) for file, line in OUR_ERROR.findall(done.text) if file == sample.source.name}
        have = f"line {', '.join(map(str, sorted(ours)))}" if ours else "no line"
        return Outcome(
            sample.name, bool(wanted & ours), f"p4c: line {', '.join(map(str, sorted(wanted)))}; here: {have}: {done.first}"
        )


def p4info_difference(theirs: str, ours: str) -> str | None:
    """Where two P4Infos differ as messages: formatting, comments and the order of fields do not count, the order of lists does."""
    try:
        wanted, have = (text_format.Parse(text, p4i.P4Info()) for text in (theirs, ours))
    except text_format.ParseError as error:
        return f"cannot be read: {error}"
    if wanted == have:
        return None
    for wanted_line, our_line in zip(str(wanted).splitlines(), str(have).splitlines(), strict=False):
        if wanted_line != our_line:
            return f"p4c: {wanted_line.strip()}; here: {our_line.strip()}"
    return "one of them ends before the other"
