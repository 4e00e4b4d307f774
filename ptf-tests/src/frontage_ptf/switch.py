# SPDX-License-Identifier: Apache-2.0
"""Test cases for a running switch. Every packet has one fate: it is forwarded, or dropped for a named reason."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_network
from pathlib import Path
from typing import Any

import finsy as fy
import ptf
from ptf.base_tests import BaseTest
from ptf.testutils import test_params_get

from frontage_ptf.client import TEST_TIMEOUT, Client, Program
from frontage_ptf.cookie import Key
from frontage_ptf.frame import Frame
from frontage_ptf.names import DROPS, OUTCOMES
from frontage_ptf.packets import NEIGHBOR_MAC, PORT_MAC, Endpoint
from frontage_ptf.site import COOKIE_PREFIXES, IID, Server, Site, Vip, port_of

KEY = Key(4, bytes(range(16)))
WORKER_SESSION = 1
"""The clone session of worker packets."""
WORKER_BYTES = 64
"""Bytes to which it truncates worker packets of a program for Tofino."""
RECIRCULATION_PORTS = {
    "tofino1": [68],
    "tofino1quic": [68],
    "tofino2": [6],
    "tofino2core": [6],
    "tofino2folded": [134],
    "tofino2full": [262, 390],
}
"""The recirculation ports of profiles for Tofino, in the pipes with trees or schedulers."""
LATE_REASONS = ("IPV4_HEADER", "IPV6_HEADER")
"""Why egress drops packets on Tofino, where ingress does not know the length of the frame."""


@dataclass(frozen=True)
class Fate:
    """Fate of a packet: the port and form in which it left, or the reason why it was dropped."""

    port: int | None = None
    frame: bytes = b""
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"dropped: {self.reason}"
        return f"left by port {self.port}: {self.frame.hex()}"


class SwitchTest(BaseTest):  # type: ignore[misc]
    """A session as primary controller with the target, newly loaded with `program`."""

    program = "frontage"
    control: str | None = None
    """A control of ingress or egress without which the test cannot run. A profile for Tofino may leave it out."""
    timeout: int | None = None
    """Timeout of connections and handshakes in ticks, None for the program's. In programs for Tofino it is a constant."""

    def setUp(self) -> None:
        super().setUp()
        params = test_params_get()
        self.target: str = params["target"]
        self.is_softswitch = self.target in ("softswitch", "tna") and not params["model"]
        if self.target == "tna" and self.program != "frontage":
            self.skipTest(f"{self.program} is a program for v1model")
        program = params["profile"] if self.target == "tna" else self.program
        self.recirculation_ports = RECIRCULATION_PORTS.get(program, [])
        build = Path(params["build"])
        if self.target == "tna" and self.timeout is not None:
            build /= f"timeout-{self.timeout}"
        compiled = Program.read(build, program)
        if self.control and compiled.control(self.control) is None:
            self.skipTest(f"{program} does not have the control {self.control}")
        self.client = Client(params["grpcaddr"], compiled)
        self.addCleanup(self.client.close)
        self.client.install_program()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        self.sent = 0
        self.came_out = 0

    def skip_without(self, control: str) -> None:
        """Skip the test if the program does not have a control."""
        if self.client.program.control(control) is None:
            self.skipTest(f"the program does not have the control {control}")

    def only_on_softswitch(self, what: str) -> None:
        if not self.is_softswitch:
            self.skipTest(f"{self.target} has no {what}")

    def counted_bytes(self, frames: Iterable[bytes]) -> int:
        """Return the bytes of frames as counters have them: on Tofino, with the frame check sequence."""
        return sum(len(frame) + (4 if self.target == "tna" else 0) for frame in frames)

    @property
    def header_bytes(self) -> int:
        """Bytes of the header that meters count with each frame: a program with a gate has limits in its second pipe."""
        return 4 if self.client.program.control("nested") is not None else 0

    def send(self, port: int, frame: bytes) -> None:
        self.dataplane.send(0, port, frame)
        self.sent += 1

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """Return the next frame from any port."""
        found = self.dataplane.poll(0, timeout=seconds)
        if found.packet is None:
            return None
        self.came_out += 1
        return found.port, found.packet

    def receive_all(self, count: int) -> Counter[tuple[int, bytes]]:
        frames: Counter[tuple[int, bytes]] = Counter()
        for _ in range(count):
            found = self.receive(TEST_TIMEOUT)
            assert found is not None, f"{frames.total()} of {count} frames came out"
            frames[found] += 1
        self.assertIsNone(self.receive(0.1), "one frame too many")
        return frames


class FrontageTest(SwitchTest):
    """The site's networks, and checks of the counters: each packet comes out, or is dropped for a named reason."""

    def setUp(self) -> None:
        super().setUp()
        self._start()

    def restart(self) -> None:
        """Clear everything but the networks, for the next case of a sweep."""
        self.settle()
        self.client.install_program()
        self.sent = self.came_out = 0
        self._start()

    def _start(self) -> None:
        self.site = Site(self.client)
        self.site.install_networks()
        if self.timeout is not None and self.target != "tna":
            self.site.set_timeouts(self.timeout)
        if self.target == "tna":
            self.client.write(
                +fy.P4CloneSessionEntry(WORKER_SESSION, packet_length_bytes=WORKER_BYTES, replicas=self.recirculation_ports)
            )
        self._drops: dict[int, int] = {}
        self._outcomes: Counter[str] = Counter()
        self._outcomes_at = 0  # packets sent when the outcomes were last read
        self._lost = False

    def tearDown(self) -> None:
        if not self._lost:
            self.settle()
            self.assertIsNone(self.receive(0.05), "a packet left twice")
        super().tearDown()

    def dropped_so_far(self) -> dict[int, int]:
        """Return the dropped packets, without copies, by reason."""
        drops: Counter[int] = Counter()
        for counter in self.client.program.drop_counters:
            drops.update(self.client.counter(counter))
        if self.target == "tna":  # egress compares the length of the IP packet with that of the frame
            late = self.client.counter("FrontageEgress.egress_drops")
            drops.update({reason: count for reason, count in late.items() if DROPS[reason] in LATE_REASONS})
        return dict(drops)

    def settle(self) -> None:
        """Wait until each packet has come out or was dropped."""
        end = time.monotonic() + TEST_TIMEOUT
        while True:
            while self.receive(0.005) is not None:
                pass
            drops = self.dropped_so_far()
            self._drops = drops
            if self.came_out + sum(drops.values()) >= self.sent or time.monotonic() > end:
                break
        named = {DROPS[reason]: count for reason, count in drops.items()}
        self.assertEqual(self.sent, self.came_out + sum(drops.values()), f"sent != came out ({self.came_out}) + dropped ({named})")

    def fate(self, port: int, frame: bytes) -> Fate:
        """Send one packet and return its fate."""
        self.send(port, frame)
        end = time.monotonic() + TEST_TIMEOUT
        while time.monotonic() < end:
            found = self.receive(0.005)
            if found is not None:
                return Fate(*found)
            drops = self.dropped_so_far()
            for reason, count in drops.items():
                if count != self._drops.get(reason, 0):
                    self._drops = drops
                    return Fate(reason=DROPS[reason])
        self._lost = True
        raise AssertionError(f"lost without a drop reason: {frame.hex()}")

    def outcomes(self) -> Counter[str]:
        """Return the packets of VIPs so far, by outcome."""
        return Counter({OUTCOMES[index]: count for index, count in self.client.counter("FrontageIngress.outcomes").items()})

    def drops(self, port: int, frame: bytes, reason: str) -> None:
        fate = self.fate(port, frame)
        if self.target == "tna" and reason in LATE_REASONS and fate.reason is not None:
            return  # ingress found another fault before egress compared the lengths
        self.assertEqual(reason, fate.reason, f"{fate}\nof {frame.hex()}")

    def passes(self, port: int, frame: bytes, to: int, expected: bytes, outcome: str | None = None) -> None:
        """Check that the packet leaves by port `to`, byte by byte as expected."""
        before = self._outcomes
        if outcome and self._outcomes_at != self.sent:
            before = self.outcomes()
        fate = self.fate(port, frame)
        self.assertEqual(Fate(to, expected), fate, f"\nexpected {Fate(to, expected)}\ngot      {fate}")
        if outcome:
            self._outcomes, self._outcomes_at = self.outcomes(), self.sent
            self.assertEqual({outcome: 1}, dict(self._outcomes - before))

    def goes_to(
        self, server: Server, frame: bytes, outcome: str | None = None, port: int = 1, second_hop: int | None = None
    ) -> None:
        """Check that the client's packet reaches `server`, with only addresses, TTL, the mark and checksums changed."""
        self.passes(port, frame, port_of(server.dip.address), to_server(frame, server, second_hop), outcome)

    def comes_back(
        self, vip: Vip, frame: bytes, outcome: str | None = None, tsval: int | None = None, ck: int | None = None, port: int = 3
    ) -> None:
        """Check that the server's packet reaches its client from the VIP, with only the cookie changed besides."""
        self.comes_from(vip.at, frame, outcome, tsval, ck, port)

    def comes_from(
        self,
        source: Endpoint,
        frame: bytes,
        outcome: str | None = None,
        tsval: int | None = None,
        ck: int | None = None,
        port: int = 3,
    ) -> None:
        """Check the same as `comes_back`, for a source address other than the VIP."""
        to = port_of(Frame(frame).dst)
        macs = (PORT_MAC[to], NEIGHBOR_MAC[to])
        expected = Frame(frame).rewritten(macs, src=(source.address, source.port), tsval=tsval, ck=ck)
        self.passes(port, frame, to, expected, outcome)

    def server_of(self, frame: bytes, vip: Vip, port: int = 1) -> Server:
        """Send a client's packet, and return the server that it reached, for which it must be correct."""
        fate = self.fate(port, frame)
        self.assertIsNone(fate.reason, f"{fate}\nof {frame.hex()}")
        out = Frame(fate.frame)
        server = next(s for s in vip.servers if s.dip == Endpoint(out.dst, out.dport))
        self.assertEqual(to_server(frame, server).hex(), fate.frame.hex())
        return server

    def wait_for_leaf(self, slot: int, value: int) -> None:
        """Wait until the tree's leaf holds `value`, because a packet-out is not acknowledged. BMv2 cannot read
        registers, so wait a fixed time."""
        if not self.is_softswitch:
            time.sleep(0.2)
            return
        self.wait_for(lambda: self.leaf(slot), value, f"leaf {slot}")

    def wait_for(self, read: Callable[[], Any], value: Any, what: str) -> None:
        """Wait until `read` returns `value`."""
        end = time.monotonic() + TEST_TIMEOUT
        while (found := read()) != value:
            self.assertLess(time.monotonic(), end, f"{what} is {found}, not {value}")

    def leaf(self, slot: int) -> int:
        trees = "FrontageEgress.tree_worker" if self.target == "tna" else "FrontageIngress.cclb4.tree"
        leaf = self.register(f"{trees}.tournament.leaf.leaves", slot)
        return leaf if self.target == "tna" else leaf >> 32  # v1model's leaves hold the last report, too

    def register(self, name: str, index: int) -> int:
        """Return a register cell, on softswitch only; the first member of a pair is in the most significant bits."""
        data = self.client.read(fy.P4RegisterEntry(name, index=index))[0].data
        if isinstance(data, dict):
            first, second = data.values()
            return int(first) << 16 | int(second)
        return int(data)


def to_server(frame: bytes, server: Server, second_hop: int | None = None) -> bytes:
    """Return a client's frame as it leaves for `server`. A cookie address keeps its interface id, in the server's
    /64."""
    port, address = port_of(server.dip.address), server.dip.address
    to = Frame(frame).dst
    if any(to in ip_network(prefix) for prefix in COOKIE_PREFIXES):
        address = IPv6Address(int(address) >> 64 << 64 | int(to) & IID)
    macs = (PORT_MAC[port], NEIGHBOR_MAC[port])
    return Frame(frame).rewritten(macs, dst=(address, server.dip.port), second_hop=second_hop)
