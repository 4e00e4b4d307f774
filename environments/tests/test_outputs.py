# SPDX-License-Identifier: Apache-2.0
"""Reading the output of ping, iperf, PTF and Scapy."""

import pytest

from outputs import connected, loss, packet_field, ptf_failures
from rows import RowError


def test_loss_comes_from_ping_and_from_pingall() -> None:
    assert loss("3 packets transmitted, 3 received, 0% packet loss, time 2003ms") == 0
    assert loss("3 packets transmitted, 2 received, 33.3333% packet loss, time 2003ms") == pytest.approx(33.3333)
    assert loss("*** Results: 8% dropped (11/12 received)") == 8


def test_ping_without_statistics_fails_with_its_last_line() -> None:
    with pytest.raises(RowError, match="Network is unreachable"):
        loss("ping: connect: Network is unreachable\n\n")


def test_connection_needs_rate_above_zero() -> None:
    assert connected("[  1] 0.0000-1.1 sec  1.25 MBytes  9.53 Mbits/sec\n")
    assert not connected("[  1] 0.0000-1.1 sec  0.00 Bytes  0.00 bits/sec\n")
    assert not connected("connect failed: Operation now in progress\n")


def test_field_has_values_of_all_packets_and_layers() -> None:
    text = "###[ IP ]### \n     tos       = 0x1\n     ttl       = 62\n###[ IP ]### \n  tos       = 0x3\n"
    text += "     |###[ SwitchTrace ]### \n     |  swid      = 2\n"
    assert packet_field(text, "tos") == {"0x1", "0x3"}
    assert packet_field(text, "swid") == {"2"}
    assert packet_field(text, "qdepth") == set()


def test_ptf_passes_only_if_tests_ran_and_none_failed() -> None:
    assert ptf_failures("test.One ... ok\n\nRan 1 test in 0.2s\n\nOK\nRan 2 tests in 1.0s\n\nOK\n") == []
    assert ptf_failures("Ran 0 tests in 0.000s\n\nOK\n")[0].startswith("PTF ran no test")
    assert ptf_failures("ptf: command not found\n") == ["PTF ran no test: ptf: command not found"]
    assert ptf_failures("FAIL: basic.Drop\nRan 2 tests in 1s\n\nFAILED (failures=1)\n") == ["basic.Drop"]


def test_ptf_that_stops_in_a_run_does_not_pass() -> None:
    assert ptf_failures("Ran 1 test in 0.2s\n\nOK\nRan 2 tests in 1.0s\n") == ["PTF reported OK for 1 of 2 runs"]
