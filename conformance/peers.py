"""The same STF tests with p4c's compiler and on BMv2, where they are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from checks import Check, Checks
from corpus import Corpus
from tools import Compiler, peer


@dataclass(frozen=True)
class Peers:
    checks_of_ours: Checks
    p4c: Compiler | None

    @classmethod
    def find(cls, corpus: Corpus, ours: Checks) -> Peers:
        p4c = peer("P4C_BM2", "p4c-bm2-ss")
        return cls(ours, Compiler("p4c-bm2-ss", p4c, corpus.root / "p4include") if p4c else None)

    def absent(self) -> list[str]:
        return []

    def checks(self) -> list[Check]:
        return []

    def report(self, result: Mapping[str, int]) -> dict[str, str]:
        return {}
