# SPDX-License-Identifier: Apache-2.0
"""Run the program `ptf` in this process, and record each test in a file as it ends. For `python -m`, by `share`.

python -m softswitch.packet_tests.launch RESULTS PTF-ARGUMENTS...
"""

import io
import runpy
import sys
import time
import unittest
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from .errors import RunError
from .results import Record, append


def ptf_program() -> str:
    """Return the path of the program `ptf`, which its package installs."""
    try:
        found = [file for file in files("ptf") or [] if file.name == "ptf" and file.parent.name == "bin"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise RunError("ptf: Python package not found: pip install 'softswitch[ptf]'")
    return str(found[0].locate())


def name_of(test: unittest.TestCase) -> str:
    """Return PTF's name of a test, MODULE.CLASS."""
    return test.id().removesuffix(".runTest")


class RecordingResult(unittest.TextTestResult):
    """Prints and records each test as it ends."""

    file: Path

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._began = time.monotonic()
        self._outcome, self._detail = "passed", ""

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self._fails(self.failures[-1][1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        if isinstance(test, unittest.TestCase):
            self._fails(self.errors[-1][1])
        else:  # setUpClass or setUpModule failed, so the test itself does not start
            self._write(Record("failed", test.id(), detail=self.errors[-1][1]))

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        failed = len(self.failures) + len(self.errors)
        super().addSubTest(test, subtest, err)
        if len(self.failures) + len(self.errors) > failed and err is not None:
            self._fails(f"{subtest}\n{self._exc_info_to_string(err, test)}")  # type: ignore[attr-defined]

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        if self._outcome == "passed":
            self._outcome, self._detail = "skipped", reason

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._fails("the test succeeds, although it is marked as an expected failure")

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self._write(Record(self._outcome, name_of(test), round(time.monotonic() - self._began, 3), self._detail))

    def _fails(self, detail: str) -> None:
        self._outcome, self._detail = "failed", detail

    def _write(self, record: Record) -> None:
        append(self.file, record)
        print(record, flush=True)


def recording_runner(file: Path) -> type[unittest.TextTestRunner]:
    """Return a test runner that records in `file`."""

    class Runner(unittest.TextTestRunner):
        def __init__(self, **_: object) -> None:
            result = type("Result", (RecordingResult,), {"file": file})
            super().__init__(stream=io.StringIO(), verbosity=0, resultclass=result)

        def run(self, test: Any) -> Any:
            for case in test:
                append(file, Record("planned", name_of(case)))
            return super().run(test)

    return Runner


def main() -> None:
    file, *arguments = sys.argv[1:]
    program = ptf_program()
    # ptf makes its runner by this name.
    unittest.TextTestRunner = recording_runner(Path(file))  # type: ignore[misc]
    sys.argv = [program, *arguments]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
