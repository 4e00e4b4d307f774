# SPDX-License-Identifier: Apache-2.0
"""The outputs that p4-learning's exercises pass with."""

from learning import PING, PINGALL, fault_in

PINGS = "3 packets transmitted, 3 received, 0% packet loss, time 2003ms\n"


def test_expected_output_passes() -> None:
    assert fault_in(f"h1 -> h2\n*** Results: 0% dropped (2/2 received)\n{PINGS}", PINGALL + PING) is None


def test_loss_and_missing_output_fail() -> None:
    assert fault_in("3 packets transmitted, 0 received, 100% packet loss\n", PING) is not None
    assert fault_in("*** Results: 50% dropped (1/2 received)\n", PINGALL) is not None
    assert fault_in("", PING) == r"the output lacks `\b3 received, 0% packet loss`: no output"


def test_fault_of_a_tool_prevails() -> None:
    assert fault_in(f"Invalid table operation (DUPLICATE_ENTRY)\n{PINGS}", PING) == "Invalid table operation (DUPLICATE_ENTRY)"
