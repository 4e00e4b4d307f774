# SPDX-License-Identifier: Apache-2.0
"""Tests of softswitch-ptf: its results, its exit status, and runs with real switches."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from softswitch.packet_tests import Artifacts, Compiler, RunError, Suite, Target, find_program
from softswitch.packet_tests.cli import parameter, port_list
from softswitch.packet_tests.results import Record, append, read, summary, write_junit

ROOT = Path(__file__).resolve().parents[3]
WIRE = ROOT / "softswitch" / "python" / "examples" / "wire"
SWITCH = os.environ.get("SOFTSWITCH", str(ROOT / "target" / "release" / "softswitch"))
COMPILER = os.environ.get("SOFTSWITCH_P4C", str(ROOT / "target" / "release" / "softswitch-p4c"))
TESTS = """
import os
import signal
import unittest
from pathlib import Path

from ptf.base_tests import BaseTest
from ptf.testutils import test_params_get


class Passes(BaseTest):
    def runTest(self):
        parameters = test_params_get()
        assert Path(parameters["p4info"]).exists()
        assert Path(parameters["config"]).exists() and parameters["json"] == parameters["config"]
        assert parameters["grpcaddr"] == "127.0.0.1:9559" and parameters["color"] == "blue" and parameters["device_id"] == 7


class Fails(BaseTest):
    def runTest(self):
        self.assertEqual("expected <\\x00>", "got")


class FailsInSubtest(BaseTest):
    def runTest(self):
        with self.subTest(number=1):
            self.fail("one")


class Skips(BaseTest):
    def runTest(self):
        self.skipTest("no such feature")


class EndsPtf(BaseTest):
    def runTest(self):
        os._exit(0)


class EndsSwitch(BaseTest):
    def runTest(self):
        for comm in Path("/proc").glob("[0-9]*/comm"):
            if comm.read_text() == "softswitch\\n" and os.readlink(comm.parent / "ns/net") == os.readlink("/proc/self/ns/net"):
                os.kill(int(comm.parent.name), signal.SIGKILL)
        signal.pause()
"""


def ptf(tests: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run softswitch-ptf with wire.p4."""
    command = [sys.executable, "-m", "softswitch.packet_tests.cli", "--program", str(WIRE / "wire.p4"), "--tests", str(tests)]
    command += ["--switch", SWITCH, "--compiler", COMPILER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_outcomes.py").write_text(TESTS)
    return folder


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0 and os.environ.get("ALLOW_SKIPS"):
        pytest.skip("network namespaces need root")


@pytest.mark.usefixtures("root")
def test_example_passes_on_two_switches(tmp_path: Path) -> None:
    done = ptf(WIRE / "ptf", "--load", "--jobs", "2", "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"
    assert (tmp_path / "1" / "ptf.pcap").stat().st_size > 24 and (tmp_path / "2" / "switch.log").exists()


@pytest.mark.usefixtures("root")
def test_coverage_of_all_switches_adds_up(tmp_path: Path) -> None:
    coverage = tmp_path / "coverage.info"
    done = ptf(WIRE / "ptf", "--load", "--jobs", "2", "--coverage", str(coverage), "--output", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = coverage.read_text().splitlines()
    assert f"SF:{WIRE / 'wire.p4'}" in lines
    # One switch forwards packets; the other one drops packets.
    calls = {name: int(count) for count, name in (line[5:].split(",") for line in lines if line.startswith("FNDA:"))}
    assert calls["I.send"] >= 2 and calls["I.drop"] >= 1
    assert (tmp_path / "coverage.html").stat().st_size > 0


def test_coverage_is_not_available_on_bmv2(tests: Path, tmp_path: Path) -> None:
    done = ptf(tests, "--target", "bmv2", "--coverage", "coverage.info", "--output", str(tmp_path))
    assert done.returncode == 2
    assert "--coverage: not available on bmv2: remove it, or use --target softswitch" in done.stderr


@pytest.mark.usefixtures("root")
def test_each_outcome_is_reported(tests: Path, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    names = ["Passes", "Fails", "FailsInSubtest", "test_outcomes.Skips"]
    parameters = ["--test-param", "color=blue", "--test-param", "device_id=7"]
    done = ptf(tests, *names, "--output", str(tmp_path), "--junit", str(junit), *parameters)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 2 failed, 1 skipped"
    assert "skipped: test_outcomes.Skips" in done.stdout
    suite = ElementTree.parse(junit).getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("4", "2", "1")
    assert {case.attrib["name"]: [child.tag for child in case] for case in suite} == {
        "Passes": [],
        "Fails": ["failure"],
        "FailsInSubtest": ["failure"],
        "Skips": ["skipped"],
    }


@pytest.mark.usefixtures("root")
def test_run_without_tests_fails_unless_skips_are_allowed(tests: Path, tmp_path: Path) -> None:
    arguments = ["Skips", "--output", str(tmp_path)]
    done = ptf(tests, *arguments)
    assert done.returncode == 1 and "no test ran" in done.stdout
    assert ptf(tests, *arguments, "--allow-skips").returncode == 0


@pytest.mark.usefixtures("root")
def test_test_that_ends_ptf_counts_as_failed(tests: Path, tmp_path: Path) -> None:
    done = ptf(tests, "EndsPtf", "--output", str(tmp_path))
    assert done.returncode == 1 and "failed: test_outcomes.EndsPtf" in done.stdout


@pytest.mark.usefixtures("root")
def test_switch_that_ends_fails_the_run(tests: Path, tmp_path: Path) -> None:
    done = ptf(tests, "EndsSwitch", "--output", str(tmp_path))
    assert done.returncode == 1
    assert "softswitch: ended with status -9 during the tests" in done.stdout and "failed: test_outcomes.EndsSwitch" in done.stdout


@pytest.mark.usefixtures("root")
def test_run_without_root_fails_unless_skips_are_allowed(tmp_path: Path) -> None:
    script = f"import os, sys; from pathlib import Path; from softswitch.packet_tests import *; folder = Path({str(tmp_path)!r}); "
    script += "target = Target('softswitch', 'softswitch'); os.setuid(65534); "
    script += "sys.exit(run(Suite(folder, target, None, folder, allow_skips={allow})))"
    for allow, status in ((False, 1), (True, 0)):
        done = subprocess.run([sys.executable, "-c", script.format(allow=allow)], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        assert ("run as root, or allow skips" in done.stderr) == (not allow)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Nothing"], "unknown test, file or group 'Nothing'"),
        (["--program", "nothing.p4"], "nothing.p4: no such file"),
        (["--program", "p.json"], "p.json: the P4Info is missing: add --p4info FILE"),
        (["--p4info", "p.json"], "p.json: the compiler writes the P4Info"),
        (["--compiler", "no-compiler"], "no-compiler: program not found"),
        (["--switch", "no-switch"], "no-switch: program not found"),
        (["-D", "table=1"], "the program does not compile"),
        (["--tests", "nothing"], "nothing: no such folder"),
    ],
)
def test_wrong_arguments_end_the_run(
    tests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    (tmp_path / "p.json").touch()
    monkeypatch.chdir(tmp_path)
    done = ptf(tests, *arguments)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.usefixtures("root")
def test_switch_with_a_wrong_option_is_reported(tests: Path, tmp_path: Path) -> None:
    done = ptf(tests, "Passes", "--output", str(tmp_path), "--switch-option=--no-such-option")
    assert done.returncode == 1 and "softswitch: did not start" in done.stdout and "--no-such-option" in done.stdout


def test_planned_tests_that_did_not_end_count_as_failed(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    for record in (Record("planned", "m.A"), Record("planned", "m.B"), Record("passed", "m.A", 0.5)):
        append(file, record)
    assert read(file) == [Record("passed", "m.A", 0.5), Record("failed", "m.B", detail="the test did not end")]
    assert summary(read(file)) == {"passed": 1, "failed": 1, "skipped": 0}


def test_junit_replaces_characters_that_xml_excludes(tmp_path: Path) -> None:
    write_junit(tmp_path / "new" / "j.xml", "suite", [Record("failed", "m.A", detail="<\x00\x1b>")])
    failure = ElementTree.parse(tmp_path / "new" / "j.xml").getroot().find(".//failure")
    assert failure is not None and failure.text == "<\ufffd\ufffd>"


def test_ports_are_numbers_and_ranges() -> None:
    assert port_list("0-2,7,510") == (0, 1, 2, 7, 510)
    for text in ("", "3-1", "a", "1,,2", "-1", "512"):
        with pytest.raises(argparse.ArgumentTypeError):
            port_list(text)


def test_parameters_are_python_literals_or_strings() -> None:
    assert parameter("a=1") == ("a", 1)
    assert parameter("a=x=y") == ("a", "x=y")
    for text in ("a", "=1", "a b=1"):
        with pytest.raises(argparse.ArgumentTypeError):
            parameter(text)


def test_test_parameters_can_be_replaced(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "p.json", tmp_path / "p.txtpb")
    suite = Suite(tmp_path, Target("bmv2", "x", cpu_port=64), artifacts, tmp_path, parameters={"device_id": 5})
    found = suite.test_parameters()
    assert (found["device_id"], found["cpu_port"], found["config"], found["target"]) == (5, 64, str(artifacts.json), "bmv2")


def test_names_are_files_classes_or_groups(tests: Path) -> None:
    def specs(*names: str) -> list[str]:
        return Suite(tests, Target("softswitch", "x"), None, tests, names).specs()

    assert specs("test_outcomes.py", "Skips", "test_outcomes.Fails", "^Slow") == [
        "test_outcomes",
        "test_outcomes.Skips",
        "test_outcomes.Fails",
        "^Slow",
    ]
    with pytest.raises(RunError, match="unknown test"):
        specs("Skip")


def test_programs_next_to_python_come_first() -> None:
    assert Path(find_program(Path(sys.executable).name, "")).resolve() == Path(sys.executable).resolve()
    with pytest.raises(RunError, match="no-program: program not found: build it"):
        find_program("no-program", "build it")


def test_compiler_writes_json_and_p4info(tmp_path: Path) -> None:
    artifacts = Compiler(COMPILER).compile(WIRE / "wire.p4", tmp_path)
    assert artifacts == Artifacts(tmp_path / "wire.json", tmp_path / "wire.p4info.txtpb")
    assert artifacts.json.exists() and "I.wires" in artifacts.p4info.read_text()
