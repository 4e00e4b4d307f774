# SPDX-License-Identifier: Apache-2.0
"""The chains of the profiles for Tofino are those in p4src/tna/chains.json."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tofino import STAGES, chains, page

REPORT = """\
ingress: the longest chain of dependent steps needs 3 stages at least
   1  table I.vip  p4src/a.p4:120
   3  register I.load  p4src/a.p4:133
egress: the longest chain of dependent steps needs 1 stages at least
   1  assignment  p4src/a.p4:7
This is a lower bound: it ignores memory.
"""


def test_report_is_parsed() -> None:
    assert chains.parse(REPORT) == {
        "ingress": chains.Chain(3, ((1, "table I.vip"), (3, "register I.load"))),
        "egress": chains.Chain(1, ((1, "assignment"),)),
    }


def test_gresses_of_several_pipes_have_names_of_their_own() -> None:
    found = chains.parse(REPORT.replace("ingress:", "edge.ingress:").replace("egress:", "core.egress:"))
    assert {gress: chain.length for gress, chain in found.items()} == {"edge.ingress": 3, "core.egress": 1}


@pytest.mark.parametrize("profile", STAGES)
def test_chains_do_not_grow_unnoticed(profile: str) -> None:
    expected = json.loads(chains.GOLDEN.read_text())[profile]
    for gress, chain in chains.chains(profile).items():
        steps = "\n".join(f"{stage:4}  {name}" for stage, name in chain.steps)
        assert chain.length == expected[gress], f"{gress} of {profile}: shorten the chain, or run `make tofino`:\n{steps}"


def test_page_has_the_chains() -> None:
    lengths = json.loads(chains.GOLDEN.read_text())
    text = page.PAGE.read_text()
    for profile, gresses in lengths.items():
        for gress, length in gresses.items():
            assert f"| `{profile}` | {gress} | {length} | {STAGES[profile]} |\n" in text
