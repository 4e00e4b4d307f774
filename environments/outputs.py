# SPDX-License-Identifier: Apache-2.0
"""Facts from the output of ping, iperf, PTF and Scapy."""

from __future__ import annotations

import re

from rows import RowError


def loss(output: str) -> float:
    """Return the percentage of lost packets from the output of `ping`, or of mininet's `pingall`.

    Raises RowError if the output has no such number.
    """
    found = re.search(r"(\d+(?:\.\d+)?)% (?:packet loss|dropped)", output)
    if found is None:
        raise RowError(f"ping reported no loss: {last_line(output)}")
    return float(found[1])


def connected(output: str) -> bool:
    """Return whether an iperf client reported a rate above 0."""
    return any(float(rate) > 0 for rate in re.findall(r"([\d.]+) [KMG]?bits/sec", output))


def packet_field(output: str, name: str) -> set[str]:
    """Return all values of a field in packets that Scapy's `show2` printed."""
    return set(re.findall(rf"^[\s|\\#]*{re.escape(name)}\s*=\s*(\S.*?)\s*$", output, re.MULTILINE))


def ptf_failures(output: str) -> list[str]:
    """Return the reasons why a run of PTF did not pass; none if at least one test ran and all passed."""
    runs = [int(count) for count in re.findall(r"^Ran (\d+) tests? in", output, re.MULTILINE)]
    if not sum(runs):
        return [f"PTF ran no test: {last_line(output)}"]
    failed = re.findall(r"^(?:FAIL|ERROR): (.+)$", output, re.MULTILINE)
    if failed:
        return failed
    passed = len(re.findall(r"^OK$", output, re.MULTILINE))
    return [] if passed >= len(runs) else [f"PTF reported OK for {passed} of {len(runs)} runs"]


def last_line(output: str) -> str:
    """Return the last line that is not empty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
