# SPDX-License-Identifier: Apache-2.0
"""The checks on p4c's samples: each selects its samples and returns an outcome for each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

import outcomes
from corpus import Corpus, Sample, error_lines, read
from outcomes import Outcome
from tools import Compiler, run

OUR_ERROR = re.compile(r"^(?:.*/)?([^/\s:]+\.p4):(\d+):\d+: error: ", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    name: str
    """Name in explained.toml."""
    total: str
    """Key of the number of samples in the result."""
    passed: str
    """Key of the number of passed samples in the result."""
    samples: Callable[[Corpus], list[Sample]]
    check: Callable[[Sample], Outcome]


@dataclass(frozen=True)
class Finished:
    """A check with the outcomes of its samples, in order."""

    check: Check
    outcomes: list[Outcome]

    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.passed]

    def surprises(self, reasons: dict[str, str], only: str | None) -> list[str]:
        """Return the outcomes that contradict explained.toml."""
        return outcomes.surprises(self.outcomes, reasons, complete=only is None)


class Checks:
    """The checks with our compiler and STF runner, which write their files to a folder."""

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
            Check("psa_stf", "psa_stf_total", "psa_stf_passed", Corpus.psa_stf_pairs, self.stf_passes),
            Check("psa_p4info", "psa_p4info_total", "psa_p4info_equal", Corpus.psa_with_p4info, self.p4info_equals),
            Check("errors", "errors_total", "errors_refused", Corpus.invalid, self.is_refused),
            Check(
                "right_line",
                "errors_with_line",
                "errors_right_line",
                lambda c: list(with_line(c.invalid())),
                self.is_refused_on_its_line,
            ),
            Check("bmv_errors", "bmv_errors_total", "bmv_errors_refused", Corpus.invalid_for_bmv2, self.is_refused),
        ]

    def stf_passes(self, sample: Sample) -> Outcome:
        done, json, _ = self.compiler.compile(sample, self.work)
        if done.status == 0:
            done = run(self.stf, json, sample.stf)
        return Outcome(sample.name, done.status == 0, done.first)

    def p4info_equals(self, sample: Sample) -> Outcome:
        done, _, p4info = self.compiler.compile(sample, self.work)
        # As in p4c, it also exists if only the target cannot run the program.
        if not p4info.exists():
            return Outcome(sample.name, False, done.first)
        difference = p4info_difference(read(sample.p4info), read(p4info))
        return Outcome(sample.name, difference is None, difference or "")

    def is_refused(self, sample: Sample) -> Outcome:
        done, _, _ = self.compiler.compile(sample, self.work)
        # Any other status but 0 is a crash.
        return Outcome(sample.name, done.status == 1, "accepted" if done.status == 0 else done.first)

    def is_refused_on_its_line(self, sample: Sample) -> Outcome:
        done, _, _ = self.compiler.compile(sample, self.work)
        expected = error_lines(sample)
        ours = {int(line) for file, line in OUR_ERROR.findall(done.text) if file == sample.source.name}
        found = f"line {', '.join(map(str, sorted(ours)))}" if ours else "no line"
        return Outcome(
            sample.name, bool(expected & ours), f"p4c: line {', '.join(map(str, sorted(expected)))}; here: {found}: {done.first}"
        )


def p4info_difference(theirs: str, ours: str) -> str | None:
    """Return the first difference of two P4Info messages. Formatting, comments and the order of fields do not matter; the
    order of lists does."""
    try:
        theirs_message, ours_message = (text_format.Parse(text, p4i.P4Info()) for text in (theirs, ours))
    except text_format.ParseError as error:
        return f"cannot be read: {error}"
    if theirs_message == ours_message:
        return None
    for their_line, our_line in zip(str(theirs_message).splitlines(), str(ours_message).splitlines(), strict=False):
        if their_line != our_line:
            return f"p4c: {their_line.strip()}; here: {our_line.strip()}"
    return "one message is a prefix of the other"
