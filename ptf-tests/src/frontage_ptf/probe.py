# SPDX-License-Identifier: Apache-2.0
"""Test case for a target itself: the small programs of p4/ and a probe header for them."""

import struct
from collections.abc import Callable

import grpc
from scapy.all import Ether

from frontage_ptf.client import WriteRefusedError
from frontage_ptf.switch import SwitchTest

MACS = bytes(Ether(src="02:00:00:00:00:aa", dst="02:00:00:00:00:bb", type=0x88B5))


def probe(kind: int, index: int = 0, value: int = 0, word: int = 0, payload: bytes = b"") -> bytes:
    """Return a frame for the programs of p4/."""
    return MACS + struct.pack("!BBHI", kind, index, value, word) + payload


def word_of(frame: bytes) -> int:
    return int(struct.unpack_from("!I", frame, 18)[0])


class ProbeTest(SwitchTest):
    def comes_out(self, frame: bytes, to: int, expected: bytes | None = None, port: int = 1) -> bytes:
        """Check that the frame leaves by port `to`, unchanged unless `expected` is given."""
        self.send(port, frame)
        found = self.receive(5)
        self.assertIsNotNone(found, f"no packet came out for {frame.hex()}")
        assert found is not None
        self.assertEqual(to, found[0])
        if expected is not None:
            self.assertEqual(expected.hex(), found[1].hex())
        return found[1]

    def is_dropped(self, frame: bytes, known: bytes, port: int = 1) -> None:
        """Check that the frame does not come out: `known`, which is sent after it, comes out first."""
        self.send(port, frame)
        self.comes_out(known, 2, known, port)
        self.assertIsNone(self.receive(0.02))

    def refused(self, code: grpc.StatusCode, call: Callable[[], object]) -> WriteRefusedError:
        """Check that a Write fails, with `code` for its first failed update (BMv2 often reports only UNKNOWN)."""
        with self.assertRaises(WriteRefusedError) as caught:
            call()
        error: WriteRefusedError = caught.exception
        bad = [one for one in error.codes if one != grpc.StatusCode.OK]
        if self.is_softswitch:
            self.assertEqual(code, bad[0] if bad else None, str(error))
        return error
