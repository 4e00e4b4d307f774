# SPDX-License-Identifier: Apache-2.0
"""Compare compilers and switches on random programs.

Each program runs in native code and in the interpreter, and, if they are installed, with p4c and on BMv2, with the same
entries and packets. A program that gives a difference is reduced, and saved with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from bmv2_json import CompiledProgram
from checks import p4info_difference
from corpus import Sample, read
from frontage.p4.p4info import Pipeline, PipelineError
from peers import bmv2, softswitch
from random_programs import Program, generate
from rounds import Restrictions, Round
from target import Target, TargetError
from tools import Compiler, own_compiler, peer

PACKETS = 100
"""Packets per program."""
REDUCTIONS = 60
"""Maximum number of runs to reduce a failing program."""


@dataclass(frozen=True)
class Failure:
    kind: str
    text: str


@dataclass(frozen=True)
class Comparison:
    work: Path
    ours: Compiler
    p4c: Compiler | None
    bmv2: Target | None

    @classmethod
    def find(cls, work: Path) -> Comparison:
        p4c = peer("P4C_BM2", "p4c-bm2-ss")
        ours = own_compiler()
        return cls(work, ours, Compiler("p4c", p4c) if p4c else None, bmv2())

    def names(self) -> str:
        compilers = [each.name for each in (self.ours, self.p4c) if each]
        switches = ["native code", "interpreter", *([self.bmv2.name] if self.bmv2 else [])]
        return f"{' and '.join(compilers)}; {', '.join(switches)}"

    def failure(self, program: Program, seed: int, name: str) -> Failure | None:
        """Return the first difference between the compilers or the switches; None if they agree."""
        source = self.work / f"{name}.p4"
        source.write_text(str(program))
        compiled: dict[str, tuple[Path, Path]] = {}
        refusals: dict[str, str] = {}
        for compiler in filter(None, (self.ours, self.p4c)):
            into = self.work / compiler.name
            into.mkdir(exist_ok=True)
            # Without the cache of `Compiler.compile`, because a reduction changes the file.
            done, json, p4info = compiler.compile_now(Sample(name, source, into, source.with_suffix(".stf")), into)
            if done.status == 0:
                compiled[compiler.name] = (json, p4info)
            else:
                refusals[compiler.name] = done.first
        if self.ours.name not in compiled:
            # A program that p4c rejects, too, is the generator's fault.
            return None if self.p4c and self.p4c.name in refusals else Failure("compiler", refusals[self.ours.name])
        if self.p4c and self.p4c.name in compiled:
            theirs, ours = (read(compiled[each.name][1]) for each in (self.p4c, self.ours))
            if difference := p4info_difference(theirs, ours):
                return Failure("P4Info", difference)
        try:
            targets = list(self._targets(compiled))
            restrictions = Restrictions(cut=False, removed_tables=_not_in_all(json for json, _ in compiled.values()))
            one = Round(name, compiled[self.ours.name], seed, PACKETS, restrictions=restrictions)
            result = asyncio.run(one.run(targets, lambda _: None))
        except (TargetError, PipelineError) as error:
            return Failure("switch", str(error))
        return Failure("difference", str(result.differences[0])) if result.differences else None

    def _targets(self, compiled: dict[str, tuple[Path, Path]]) -> list[Target]:
        native = softswitch()
        targets = []
        for name, (json, p4info) in compiled.items():
            pipeline = Pipeline.load(p4info, json)
            for target in filter(None, (native, self.bmv2)):
                targets.append(replace(target, name=f"{name}, {target.name}", pipeline=pipeline))
        interpreter = replace(native, name=f"{self.ours.name}, interpreter", before=("--engine", "interpreter", *native.before))
        return [*targets, interpreter]


def _not_in_all(programs: Iterable[Path]) -> frozenset[str]:
    """Return the tables that only some of the compiled programs contain."""
    tables = [CompiledProgram(program).tables() for program in programs]
    return frozenset[str]().union(*tables) - tables[0].intersection(*tables)


def compare(programs: int, seed: int, work: Path, console: Console) -> int:
    """Compare random programs; return 1 if there is a difference."""
    work.mkdir(parents=True, exist_ok=True)
    comparison = Comparison.find(work)
    console.print(f"random programs, seed {seed}: {comparison.names()}")
    failed = 0
    for number in range(seed * 1_000_000, seed * 1_000_000 + programs):
        name = f"random-{number}"
        program = generate(number)
        failure = comparison.failure(program, number, name)
        if failure is None:
            (work / f"{name}.p4").unlink()
            continue
        failed += 1
        reduced = program.reduced(_fails_like(comparison, failure, number))
        (work / f"{name}.p4").write_text(str(program))
        (work / f"{name}-reduced.p4").write_text(str(reduced))
        (work / f"{name}.txt").write_text(f"{failure.text}\n")
        console.print(f"{work / name}-reduced.p4: {failure.kind}: {failure.text}", style="red", markup=False)
    console.print(f"{programs} random programs, {failed} with differences")
    return 1 if failed else 0


def _fails_like(comparison: Comparison, failure: Failure, seed: int) -> Callable[[Program], bool]:
    """Return a test whether a program still has this kind of failure; false after the maximum number of runs."""
    runs = 0

    def fails(program: Program) -> bool:
        nonlocal runs
        runs += 1
        if runs > REDUCTIONS:
            return False
        found = comparison.failure(program, seed, "reduction")
        return found is not None and found.kind == failure.kind

    return fails
