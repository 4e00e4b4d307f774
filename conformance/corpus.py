# SPDX-License-Identifier: Apache-2.0
"""The sample programs of a p4c checkout, with p4c's expected outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

V1MODEL = re.compile(r'^\s*#\s*include\s*[<"](?:.*/)?v1model\.p4[>"]', re.MULTILINE)
PSA = re.compile(r'^\s*#\s*include\s*[<"](?:.*/)?(?<!dpdk/)psa\.p4[>"]', re.MULTILINE)
"""Programs for psa_switch. Those for DPDK have a psa.p4 of their own, with other externs."""
POSITION = re.compile(r"^(?:.*/)?([^/\s(]+\.p4)\((\d+)\):(?! \[--W(?!error))", re.MULTILINE)
"""The position of a message of p4c that is not a warning. Positions to which a message only refers lack the colon."""
NAMED_ACTION = re.compile(r'@name\("([^"]*)"\)(?: @\w+(?:\([^)]*\))?)* action ')
ERROR = re.compile(r"\berror:|syntax error")


class CorpusError(Exception):
    """A fault of the checkout, and how to fix it."""


@dataclass(frozen=True)
class Sample:
    """A program with its related files."""

    name: str
    """The path below its folder, without ``.p4``."""
    source: Path
    outputs: Path
    """The folder of p4c's outputs for it."""
    stf: Path
    """The STF test, which may not exist."""

    @property
    def p4info(self) -> Path:
        return self.outputs / f"{self.source.name}.p4info.txtpb"

    @property
    def stderr(self) -> Path:
        return self.outputs / f"{self.source.name}-stderr"


@dataclass(frozen=True)
class Corpus:
    root: Path
    version: str

    @classmethod
    def find(cls, root: str) -> Corpus:
        """Return the corpus in a p4c checkout, or raise CorpusError."""
        if not root:
            raise CorpusError(
                "P4C is not set. Clone github.com/p4lang/p4c (no build is needed), then: make conformance P4C=path/to/p4c"
            )
        path = Path(root).resolve()
        if not (path / "testdata" / "p4_16_samples").is_dir():
            raise CorpusError(
                f"{root}: not a p4c checkout: missing testdata/p4_16_samples: use the folder that `git clone` created"
            )
        version = path / "Version.txt"
        return cls(path, version.read_text().strip() if version.is_file() else "of unknown version")

    def _folder(self, folder: str) -> Iterator[Sample]:
        top = self.root / "testdata" / folder
        for source in sorted(top.rglob("*.p4")):
            below = source.relative_to(top)
            outputs = self.root / "testdata" / f"{folder}_outputs" / below.parent
            yield Sample(str(below.with_suffix("")), source, outputs, source.with_suffix(".stf"))

    def v1model(self) -> list[Sample]:
        """Return the samples that include v1model.p4 directly."""
        return [sample for sample in self._folder("p4_16_samples") if V1MODEL.search(read(sample.source))]

    def psa(self) -> list[Sample]:
        """Return the samples that include psa.p4 directly."""
        return [sample for sample in self._folder("p4_16_samples") if PSA.search(read(sample.source))]

    def psa_stf_pairs(self) -> list[Sample]:
        return [sample for sample in self.psa() if sample.stf.is_file()]

    def psa_with_p4info(self) -> list[Sample]:
        return [sample for sample in self.psa() if sample.p4info.is_file()]

    def stf_pairs(self) -> list[Sample]:
        return [sample for sample in self.v1model() if sample.stf.is_file()]

    def printed(self) -> list[Sample]:
        """Return p4c's printouts, after each stage, of programs with an STF test, including P4_14 ones.

        These are different programs with the same behaviour. Printouts in which a stage gave two actions the same name are
        excluded; p4c does not write P4Info for these either.
        """
        tested = [
            sample for folder in ("p4_14_samples", "p4_16_samples") for sample in self._folder(folder) if sample.stf.is_file()
        ]
        printed = [
            Sample(f"{sample.name}-{stage}", sample.outputs / f"{sample.source.stem}-{stage}.p4", sample.outputs, sample.stf)
            for sample in tested
            for stage in ("first", "frontend", "midend")
        ]
        return [sample for sample in printed if sample.source.is_file() and _can_be_controlled(read(sample.source))]

    def with_p4info(self) -> list[Sample]:
        return [sample for sample in self.v1model() if sample.p4info.is_file()]

    def invalid(self) -> list[Sample]:
        """Return the samples in which p4c finds an error, for all architectures."""
        found = [sample for sample in self._folder("p4_16_errors") if sample.stderr.is_file()]
        return [sample for sample in found if ERROR.search(read(sample.stderr))]

    def invalid_for_bmv2(self) -> list[Sample]:
        """Return the samples that p4c's back ends for BMv2 reject; p4c does not store its output for them."""
        psa = [sample for sample in self._folder("p4_16_psa_errors") if PSA.search(read(sample.source))]
        return [*self._folder("p4_16_bmv_errors"), *psa]


def error_lines(sample: Sample) -> frozenset[int]:
    """Return the lines of the program that p4c's errors, or their causes, are on."""
    return frozenset(int(line) for file, line in POSITION.findall(read(sample.stderr)) if file == sample.source.name)


def _can_be_controlled(text: str) -> bool:
    names = NAMED_ACTION.findall(text)
    return bool(V1MODEL.search(text)) and len(set(names)) == len(names)


def read(path: Path) -> str:
    """Read a text file; the comments of some programs contain bytes that are not UTF-8."""
    return path.read_text(encoding="utf-8", errors="replace")
