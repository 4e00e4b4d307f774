"""The programs of a p4c checkout that are the yardstick, and what p4c's own outputs beside them say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

V1MODEL = re.compile(r'^\s*#\s*include\s*[<"](?:.*/)?v1model\.p4[>"]', re.MULTILINE)
POSITION = re.compile(r"^(?:.*/)?([^/\s(]+\.p4)\((\d+)\):(?! \[--W(?!error))", re.MULTILINE)
"""Where a message of p4c is, unless it is a warning. Of a place that a message only refers to, no colon follows the number."""
ERROR = re.compile(r"\berror:|syntax error")


class CorpusError(Exception):
    """What is wrong with the checkout, and what to do about it."""


@dataclass(frozen=True)
class Sample:
    """A program with what belongs to it."""

    name: str
    """The path below its folder, without ``.p4``."""
    source: Path
    outputs: Path
    """The folder of p4c's own outputs for it."""

    @property
    def stf(self) -> Path:
        return self.source.with_suffix(".stf")

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
        """Raises CorpusError where this is no p4c checkout."""
        if not root:
            raise CorpusError("P4C is not set. Clone github.com/p4lang/p4c (no build is needed), then: make conformance P4C=path/to/p4c")
        path = Path(root).resolve()
        if not (path / "testdata" / "p4_16_samples").is_dir():
            raise CorpusError(f"{root} is no p4c checkout: it has no testdata/p4_16_samples. Give the folder that `git clone` made")
        version = path / "Version.txt"
        return cls(path, version.read_text().strip() if version.is_file() else "of unknown version")

    def _folder(self, folder: str) -> Iterator[Sample]:
        top = self.root / "testdata" / folder
        for source in sorted(top.rglob("*.p4")):
            below = source.relative_to(top)
            yield Sample(str(below.with_suffix("")), source, self.root / "testdata" / f"{folder}_outputs" / below.parent)

    def v1model(self) -> list[Sample]:
        """Those that include v1model.p4 themselves."""
        return [sample for sample in self._folder("p4_16_samples") if V1MODEL.search(read(sample.source))]

    def stf_pairs(self) -> list[Sample]:
        return [sample for sample in self.v1model() if sample.stf.is_file()]

    def with_p4info(self) -> list[Sample]:
        return [sample for sample in self.v1model() if sample.p4info.is_file()]

    def wrong(self) -> list[Sample]:
        """Those in which p4c finds an error, of all architectures."""
        found = [sample for sample in self._folder("p4_16_errors") if sample.stderr.is_file()]
        return [sample for sample in found if ERROR.search(read(sample.stderr))]

    def wrong_for_bmv2(self) -> list[Sample]:
        """Those that p4c's back end for BMv2 refuses; there is no output beside them."""
        return list(self._folder("p4_16_bmv_errors"))


def error_lines(sample: Sample) -> frozenset[int]:
    """The lines of the program itself on which p4c's errors are, and those of their causes."""
    return frozenset(int(line) for file, line in POSITION.findall(read(sample.stderr)) if file == sample.source.name)


def read(path: Path) -> str:
    """Some programs have bytes in their comments that are no UTF-8."""
    return path.read_text(encoding="utf-8", errors="replace")
