# SPDX-License-Identifier: Apache-2.0
"""Run a suite on several switches at once, and report."""

import os
import threading

from .errors import RunError
from .results import Record, read, summary, write_junit
from .share import RESULTS, start_share
from .suite import Suite


def run(suite: Suite) -> int:
    """Run the tests, print each result and a summary. Return 0 if tests ran and none failed, else 1.

    Without root, or if no test ran, the result is 0 only if the suite allows skips.
    """
    if os.geteuid() != 0:
        if not suite.allow_skips:
            raise RunError("network namespace: root is missing: run as root, or allow skips")
        print("skipped: a network namespace needs root")
        return _report(suite, [], complete=True)
    suite.specs()  # names that are wrong end the run before a switch starts
    folders = [suite.output / str(number + 1) for number in range(suite.jobs)]
    children = [start_share(suite, number, folder.resolve()) for number, folder in enumerate(folders)]
    # Threads start after the last fork: a child would inherit locks that they hold.
    printers = [threading.Thread(target=_forward, args=[output]) for _, output in children]
    for printer in printers:
        printer.start()
    statuses = [os.waitpid(pid, 0)[1] for pid, _ in children]
    for printer in printers:
        printer.join()
    return _report(suite, [record for folder in folders for record in read(folder / RESULTS)], complete=not any(statuses))


def _forward(output: int) -> None:
    """Print the output of a child process line by line."""
    with os.fdopen(output, errors="replace") as lines:
        for line in lines:
            print(line, end="", flush=True)


def _report(suite: Suite, records: list[Record], complete: bool) -> int:
    counts = summary(records)
    if not complete and not counts["failed"]:
        records = [*records, Record("failed", f"{suite.target.name}.Run", detail="ptf or a switch failed: see the output")]
        counts = summary(records)
    if suite.junit is not None:
        write_junit(suite.junit, suite.tests.resolve().name, records)
    for record in records:
        if record.outcome != "passed":
            print(f"{record.outcome}: {record.test}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if counts["failed"]:
        return 1
    if not counts["passed"] and not suite.allow_skips:
        print(f"{suite.tests}: no test ran: select other tests, or allow skips")
        return 1
    return 0
