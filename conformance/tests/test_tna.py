# SPDX-License-Identifier: Apache-2.0
"""TNA: programs, tests and results, with a small checkout made here."""

from pathlib import Path

import pytest

import report
import tna_conformance
from corpus import CorpusError
from outcomes import Outcome
from tna import page, programs, ptf
from tna.compilers import json_difference, pipelines
from tna.page import Results
from tna.programs import CLIENT, PROGRAMS, PROTO, PTF_UTILS, Checkout

FOR_BOTH = "#if __TARGET_TOFINO__ == 2\n#include <t2na.p4>\n#else\n#include <tna.p4>\n#endif\nSwitch(pipe) main;\n"
TEST = "class Base(BfRuntimeTest):\n    def setUp(self): pass\n\nclass First(Base):\n    def runTest(self): pass\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a checkout with two programs for TNA, one of which has tests, one for v1model, and a folder with tests only."""
    files = {
        PROGRAMS / "tna_a/tna_a.p4": FOR_BOTH,
        PROGRAMS / "tna_a/test.py": TEST,
        PROGRAMS / "t2na_b/t2na_b.p4": "#include <t2na.p4>\nSwitch(pipe) main;\n",
        PROGRAMS / "common/headers.p4": "#include <tna.p4>\n",
        PROGRAMS / "other/other.p4": "#include <v1model.p4>\nV1Switch() main;\n",
        PROGRAMS / "other/test.py": TEST,
        PROGRAMS / "many/loading/test.py": TEST,
        PROTO: "",
    }
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    for folder in (CLIENT, PTF_UTILS):
        (tmp_path / folder).mkdir(parents=True)
    return Checkout.find(str(tmp_path))


@pytest.fixture
def results() -> Results:
    compiled = [Outcome("t2na_b/tofino2", False, "error: 1"), Outcome("tna_a/tofino", True), Outcome("tna_a/tofino2", True)]
    return Results({"compile": compiled, "ptf": [Outcome("many/loading/First", False, "x"), Outcome("tna_a/First", True)]})


def test_unset_checkout_says_what_to_clone() -> None:
    with pytest.raises(CorpusError, match=r"clone github\.com/p4lang/open-p4studio"):
        Checkout.find("")


def test_other_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="not a checkout of open-p4studio: missing"):
        Checkout.find(str(tmp_path))


def test_programs_are_those_for_tna_with_main(checkout: Checkout) -> None:
    found = {program.name: [chip.name for chip in program.chips] for program in checkout.programs()}
    assert found == {"t2na_b": ["tofino2"], "tna_a": ["tofino", "tofino2"]}


def test_each_chip_has_its_preferred_architecture(checkout: Checkout) -> None:
    program = checkout.programs()[1]
    assert [program.architecture(chip) for chip in program.chips] == ["tna", "t2na"]


def test_folder_without_program_is_a_suite_but_other_architectures_are_not(checkout: Checkout) -> None:
    found = {suite.name: suite.program and suite.program.name for suite in checkout.suites()}
    assert found == {"many/loading": None, "tna_a": "tna_a"}


def test_suite_has_the_ports_and_internal_pipes_of_its_files(checkout: Checkout) -> None:
    suite = checkout.suites()[0]
    assert (suite.ports, suite.internal_ports) == (programs.PORTS, ())
    (suite.folder / "ports.json").write_text('{"PortToVeth": [{"device_port": 1}, {"device_port": 129}, {"_comment": "x"}]}')
    (suite.folder / "custom_model_options").write_text("--int-port-loop 0xa\n")
    assert (suite.ports, suite.internal_ports) == ((1, 129), (129,))


def test_programs_below_a_folder_run_in_its_pipes(checkout: Checkout) -> None:
    for part in ("b", "a"):
        (checkout.folder / "many/loading" / part).mkdir()
        (checkout.folder / "many/loading" / part / f"{part}.p4").write_text(FOR_BOTH)
    parts = {suite.name: [part.name for part in suite.parts] for suite in checkout.suites()}
    assert parts == {"many/loading": ["a", "b"], "tna_a": []}


def test_pipelines_are_the_first_parts_of_names_of_tables(tmp_path: Path) -> None:
    schema = tmp_path / "bf-rt.json"
    schema.write_text('{"tables": [{"name": "a.Ingress.t"}, {"name": "a.Egress.t"}, {"name": "b.Ingress.t"}]}')
    assert pipelines(schema) == {"a", "b"}


def test_inherited_method_makes_a_test_but_helper_class_does_not() -> None:
    assert programs.test_names(TEST + "class Second(First):\n    pass\n") == ("First", "Second")


def test_selection_keeps_named_suites_and_test(checkout: Checkout) -> None:
    assert [suite.name for suite in tna_conformance.select(checkout, "many", None)] == ["many/loading"]
    assert [suite.tests for suite in tna_conformance.select(checkout, "tna_a", "First")] == [("First",)]
    assert tna_conformance.select(checkout, "t2na_b", None) == []
    with pytest.raises(CorpusError, match="unknown program tna: see --list"):
        tna_conformance.select(checkout, "tna", None)
    with pytest.raises(CorpusError, match="unknown test Third"):
        tna_conformance.select(checkout, None, "Third")


def test_page_has_counts_a_row_per_program_and_reasons(checkout: Checkout, results: Results) -> None:
    reasons = {"ptf": {"many/loading/First": "Several programs"}}
    text = page.blocks(results, checkout, reasons)["tna"]
    assert "| programs that compile, for each Tofino | 2 | 3 |" in text
    assert "| PTF tests that pass | 1 | 2 |" in text
    assert "| `tna_a` | yes | yes | 1 of 1 |" in text
    assert "| `t2na_b` | - | no | - |" in text
    assert "| `many/loading` | - | - | 0 of 1 |" in text
    assert "| Several programs | `many/loading/First` |" in text
    assert "| Unexplained: `error: 1` | `t2na_b/tofino2` |" in text


def test_skipped_comparison_keeps_its_block(checkout: Checkout, results: Results) -> None:
    assert set(page.blocks(results, checkout, {})) == {"tna"}
    checks = dict(results.checks) | {"p4info": [Outcome("tna_a/tofino", True)], "schema": [Outcome("tna_a/tofino", True)]}
    text = page.blocks(Results(checks), checkout, {})["tna-compiler"]
    assert "| equal schemas of BfRuntime | 1 | 1 |" in text


def test_page_has_the_marks_of_all_blocks() -> None:
    text = report.PAGE.read_text()
    for name in ("tna", "tna-compiler"):
        assert text.index(f"<!-- {name}: written by make -->") < text.index(f"<!-- end of {name} -->")


def test_status_follows_from_reasons(checkout: Checkout, results: Results) -> None:
    console = tna_conformance.Console(quiet=True)
    reasons = {"compile": {"t2na_b/tofino2": "why"}, "ptf": {"many/loading/First": "why"}}
    assert tna_conformance.finish(results, checkout, reasons, False, console) == 0
    del reasons["ptf"]["many/loading/First"]
    assert tna_conformance.finish(results, checkout, reasons, False, console) == 1
    reasons["ptf"] = {"many/loading/First": "why", "tna_a/First": "why"}
    assert tna_conformance.finish(results, checkout, reasons, False, console) == 1


def test_first_error_has_the_status_of_grpc() -> None:
    log = '...\ngrpc._channel._RpcError: <_RpcError of RPC that terminated with:\n\tstatus = StatusCode.UNKNOWN\n\tdetails = "bad id"\n'
    assert ptf.first_error(log) == "UNKNOWN: bad id"
    log = log.replace("bad id", "Write Error Status") + "Error(s):\n\t* At index 0: NOT_FOUND, 'no entry'\n"
    assert ptf.first_error(log) == "NOT_FOUND, 'no entry'"
    assert ptf.first_error("Traceback\n  at 1\nKeyError: 'x'\nValueError: 2\n") == "KeyError: 'x'"
    assert ptf.first_error("") == "failed without an error"


def test_run_without_test_does_not_count_as_passed() -> None:
    assert ptf.vacuous("Ran 1 test in 0.1s\n\nOK\n") == ""
    assert ptf.vacuous("Ran 0 tests in 0.1s\n\nOK\n") == "PTF did not run the test"
    for skipped in (
        "Ran 1 test in 0.1s\n\nOK (skipped=1)\n",
        "Only for hardware. Skipping.\nRan 1 test in 0.1s\n",
        "Ran 1 test in 0.000s\n",
    ):
        assert ptf.vacuous(skipped) == "the test skips itself, or a part"


def test_difference_of_schemas_names_its_path() -> None:
    ours = {"tables": [{"name": "b", "id": 2}, {"name": "a", "id": 1, "key": [1, 2]}]}
    assert json_difference({"tables": [{"id": 1, "name": "a", "key": [1, 2]}, {"name": "b", "id": 2}]}, ours) is None
    assert json_difference({"tables": [ours["tables"][0]]}, ours) == "/tables/a: only softswitch-p4c has it"
    changed = {"tables": [ours["tables"][0], {"name": "a", "id": 1, "key": [1, 3]}]}
    assert json_difference(changed, ours) == "/tables/a/key/1: P4C_TOFINO: 3; here: 2"
