# SPDX-License-Identifier: Apache-2.0
"""State of each server for operators: its last report, and the number of new connections."""

import finsy as fy

from frontage_ptf.balancer import BalancerTest
from frontage_ptf.packets import linux_syn
from frontage_ptf.site import CCLB4, HASH

REPORTS, NEW_FLOWS = "FrontageIngress.server_loads.reports", "FrontageIngress.server_loads.new_flows"
TCP = 1


class ServersReportAndGetConnections(BalancerTest):
    """A report of a server changes only its own cell, and has a score under cclb4 only. SYNs count, other packets do not."""

    control = "server_loads"

    def cell(self, sid: int) -> tuple[int, ...]:
        """Return carrier, N_AF, N_FF, whether there is a score, and the score."""
        word = self.register(REPORTS, sid)
        return word >> 56, word >> 40 & 0xFF, word >> 32 & 0xFF, word >> 16 & 0xFFFF, word & 0xFFFF

    def new_flows(self, sid: int) -> int:
        (found,) = self.client.read(fy.P4CounterEntry(NEW_FLOWS, index=sid))
        return int(found.packet_count)

    def runTest(self) -> None:
        self.only_on_softswitch("access to registers")
        self.add_class(0, 0.5)
        vip = self.make_vip(3, policy=CCLB4)
        first, second, third = vip.servers
        self.assertEqual((0, 0, 0, 0, 0), self.cell(first.sid))
        self.report(vip, first, 3, 2)
        self.report(vip, second, 9, 31)
        self.assertEqual((TCP, 3, 2, 1), self.cell(first.sid)[:4])
        self.assertEqual((TCP, 9, 31, 1), self.cell(second.sid)[:4])
        self.assertLess(self.cell(first.sid)[4], self.cell(second.sid)[4])
        self.assertEqual((0, 0, 0, 0, 0), self.cell(third.sid))

        vip.policy = HASH
        self.site.update_policy(vip)
        self.report(vip, first, 4, 1)
        self.assertEqual((TCP, 4, 1, 0, 0), self.cell(first.sid))

        for count in range(1, 6):
            flow = self.new_flow(vip)
            slot = flow.hash & vip.maglev_size - 1
            self.goes_to(vip.servers[slot % 3], flow.up("S", linux_syn(1)), "ASSIGNED_HASH")
            self.goes_to(first, flow.up("A", self.echoed(flow, first)), "RETRIEVED_COOKIE")
            self.assertEqual(count, sum(self.new_flows(server.sid) for server in vip.servers))
        self.goes_to(second, flow.up("A", self.echoed(flow, second)), "RETRIEVED_COOKIE")
        self.assertEqual(5, sum(self.new_flows(server.sid) for server in vip.servers))
