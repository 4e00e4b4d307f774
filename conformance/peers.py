# SPDX-License-Identifier: Apache-2.0
"""The four-way table: the same STF tests with our compiler and p4c's, on softswitch and on BMv2, if these are installed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc

import report
import stf
from checks import Check, Checks
from corpus import Corpus, Sample
from frontage.p4.p4info import Pipeline, PipelineError
from outcomes import Outcome
from target import Target, TargetError
from tools import Compiler, own, peer, run, version

NO_P4C = "missing p4c-bm2-ss: set P4C_BM2 or PATH to run the STF tests with p4c, too"
NO_P4C_PSA = "missing p4c-bm2-psa: set P4C_PSA or PATH to run the STF tests of PSA with p4c, too"
NO_BMV2 = "missing simple_switch_grpc: set BMV2 or PATH to run the STF tests on BMv2, too"
_BEFORE_SERVERS = ("--no-p4", "--")


def softswitch() -> Target:
    return Target("softswitch", own("SOFTSWITCH", "softswitch"), _BEFORE_SERVERS)


def bmv2() -> Target | None:
    found = peer("BMV2", "simple_switch_grpc")
    return Target("BMv2", found, _BEFORE_SERVERS) if found else None


@dataclass(frozen=True)
class Peers:
    ours: Checks
    p4c: Compiler | None
    p4c_psa: Compiler | None
    bmv2: Target | None
    work: Path

    @classmethod
    def find(cls, corpus: Corpus, ours: Checks, work: Path) -> Peers:
        def compiler(variable: str, name: str) -> Compiler | None:
            found = peer(variable, name)
            return Compiler(name, found, corpus.root / "p4include") if found else None

        return cls(ours, compiler("P4C_BM2", "p4c-bm2-ss"), compiler("P4C_PSA", "p4c-bm2-psa"), bmv2(), work)

    def missing(self) -> list[str]:
        peers = ((self.p4c, NO_P4C), (self.p4c_psa, NO_P4C_PSA), (self.bmv2, NO_BMV2))
        return [text for found, text in peers if found is None]

    def checks(self) -> list[Check]:
        found = []
        if self.p4c:
            found.append(_check("stf_p4c_softswitch", partial(self.on_softswitch, self.p4c)))
        if self.p4c_psa:
            check = partial(self.on_softswitch, self.p4c_psa)
            name = "psa_p4c_softswitch"
            found.append(Check(name, f"{name}_total", f"{name}_passed", Corpus.psa_stf_pairs, check))
        if self.bmv2:
            found.append(_check("stf_own_bmv2", partial(self.on, self.bmv2, self.ours.compiler, self.ours.work)))
        if self.p4c and self.bmv2:
            found.append(_check("stf_p4c_bmv2", partial(self.on, self.bmv2, self.p4c, self.work)))
        return found

    def on_softswitch(self, compiler: Compiler, sample: Sample) -> Outcome:
        done, json, _ = compiler.compile(sample, self.work)
        if done.status == 0:
            done = run(self.ours.stf, json, sample.stf)
        return Outcome(sample.name, done.status == 0, done.first)

    def on(self, target: Target, compiler: Compiler, work: Path, sample: Sample) -> Outcome:
        done, json, p4info = compiler.compile(sample, work)
        if done.status != 0:
            return Outcome(sample.name, False, done.first)
        try:
            differences = asyncio.run(stf.differences(target, Pipeline.load(p4info, json), sample.stf))
        except (stf.StfError, TargetError, PipelineError, grpc.RpcError) as error:
            return Outcome(sample.name, False, str(error).replace("\n", " "))
        return Outcome(sample.name, not differences, "; ".join(differences[:1]))

    def report(self, result: Mapping[str, int], failures: str) -> dict[str, str]:
        """Return the block of docs/conformance.md; none if both programs are missing, so that the last result remains."""
        if not (self.p4c or self.p4c_psa or self.bmv2):
            return {}

        def cell(name: str) -> str:
            return f"{result[f'{name}_passed']} of {result[f'{name}_total']}" if f"{name}_total" in result else "not installed"

        rows = [
            ("softswitch-p4c", cell("stf"), cell("stf_own_bmv2")),
            (
                f"p4c-bm2-ss {version(self.p4c.binary)}" if self.p4c else "p4c-bm2-ss",
                cell("stf_p4c_softswitch"),
                cell("stf_p4c_bmv2"),
            ),
        ]
        if self.p4c_psa:
            rows.append(("softswitch-p4c, tests of PSA", cell("psa_stf"), "-"))
            rows.append(("p4c-bm2-psa, tests of PSA", cell("psa_p4c_softswitch"), "-"))
        switch = f"BMv2 simple_switch_grpc {version(self.bmv2.binary)}" if self.bmv2 else "BMv2 simple_switch_grpc"
        return {"four-way": f"{report.table(('compiler', 'softswitch', switch), rows)}\n\n{failures}"}


def _check(name: str, check: partial[Outcome]) -> Check:
    return Check(name, f"{name}_total", f"{name}_passed", Corpus.stf_pairs, check)
