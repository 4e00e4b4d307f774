# SPDX-License-Identifier: Apache-2.0
"""PTF tests of wire.p4. Run them as root:

softswitch-ptf --program softswitch/python/examples/wire/wire.p4 --load --tests softswitch/python/examples/wire/ptf
"""

import ptf
from ptf.base_tests import BaseTest
from ptf.testutils import send_packet, simple_tcp_packet, verify_no_other_packets, verify_packets


class WireTest(BaseTest):
    """A switch that runs wire.p4."""

    def setUp(self) -> None:
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()


class ConnectsBothPorts(WireTest):
    def runTest(self) -> None:
        for port, other in ((0, 1), (1, 0)):
            packet = simple_tcp_packet(ip_ttl=port + 7)
            send_packet(self, port, packet)
            verify_packets(self, packet, [other])


class DropsPacketsOfOtherPorts(WireTest):
    def runTest(self) -> None:
        send_packet(self, 2, simple_tcp_packet())
        verify_no_other_packets(self)
