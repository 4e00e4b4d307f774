# SPDX-License-Identifier: Apache-2.0
"""Test case for CCLB4: VIPs with servers that report their loads, and clients that open connections."""

import random
from ipaddress import ip_address

from frontage_ptf.cookie import decode, dynamic_tsval
from frontage_ptf.packets import Endpoint, Flow, linux_syn, random_client, stamped
from frontage_ptf.site import CCLB4, CHEETAH_RR, HASH, SEED, UNIT, Server, Vip, score, tree_depth_for
from frontage_ptf.switch import KEY, FrontageTest
from frontage_ptf.tree import Leaves

VIP4 = Endpoint(ip_address("192.0.2.1"), 80)
VIP6 = Endpoint(ip_address("2001:db8:f::1"), 443)
FIRST_DIP = {4: ip_address("10.1.0.16"), 6: ip_address("fd12:3456:a::10")}


TCP_CONTROL = "reading.retrieve"
"""A control of TCP services, which a profile may leave out."""


class BalancerTest(FrontageTest):
    """A VIP, the model of its tree, and the key that seals its cookies."""

    control = TCP_CONTROL

    def setUp(self) -> None:
        super().setUp()
        self.rng = random.Random(str(self))
        self._begin()

    def restart(self) -> None:
        super().restart()
        self._begin()

    def _begin(self) -> None:
        self.shares: dict[int, tuple[float, float]] = {}
        self.leaves = Leaves(keeps_ties=self.target == "tna")
        if self.client.program.control(TCP_CONTROL):
            self.site.install_key(KEY)
            self.site.activate_key(KEY)

    def add_class(self, score_class: int, a: float, weight: float = 1.0) -> None:
        self.site.add_scores(score_class, a, weight)
        self.shares[score_class] = a, weight

    def make_vip(
        self, count: int, id: int = 1, at: Endpoint = VIP4, policy: int = CCLB4, base: int = 0, first_sid: int = 100, spare: int = 0
    ) -> Vip:
        """Install a VIP of `count` servers in shuffled slots of its block, with room for `spare` more."""
        depth = tree_depth_for(count + spare)
        slots = self.rng.sample(range(base, base + (1 << depth)), count)
        servers = [
            Server(first_sid + i, Endpoint(FIRST_DIP[at.address.version] + 4096 * (id - 1) + i, 8080), slot=slot)
            for i, slot in enumerate(slots)
        ]
        vip = Vip(id, at, servers, policy=policy, tree_base=base, tree_depth=depth)
        self.site.add_vip(vip)
        return vip

    def tcp_vips(self, policy: int = HASH) -> list[Vip]:
        """Install a VIP of each IP version, with servers whose SIDs use all 12 bits."""
        vips = [
            self.make_vip(3, 1, VIP4, base=16, first_sid=0xA50, policy=policy),
            self.make_vip(3, 2, VIP6, base=32, first_sid=0x5AF, policy=policy),
        ]
        for vip in vips:
            if policy == CHEETAH_RR:
                self.site.set_pool(vip, [server.sid for server in vip.servers])
                self.site.update_policy(vip)
        return vips

    def new_flow(self, vip: Vip) -> Flow:
        return Flow(random_client(self.rng, vip.at.address.version == 6), vip.at)

    def seed(self, vip: Vip, *servers: Server) -> None:
        """Seed active servers, as the controller does."""
        for server in servers:
            self.site.update_tree(vip, SEED, server.slot, server.sid)
            self.leaves.seed(server.slot, server.sid)
        for server in servers:
            self.wait_for_leaf(server.slot, self.leaves.at[server.slot])

    def wait_for_root(self, vip: Vip) -> None:
        """Wait until the tree's root is that of the model. On Tofino, a worker packet brings it to ingress."""
        if self.target != "tna":
            return
        root = "FrontageIngress.cclb4.tree.root.roots"
        self.wait_for(lambda: self.register(root, vip.tree_base), self.leaves.root(vip), root)

    def report(self, vip: Vip, server: Server, n_af: int, n_ff: int) -> None:
        """Send a packet of the server with its loads, as quantisation codes."""
        tsval = dynamic_tsval(self.rng.getrandbits(16), self.rng.getrandbits(6), n_af, n_ff)
        flow = self.new_flow(vip)
        fate = self.fate(3, flow.down(server.dip, options=stamped(tsval, 5), ck=1))
        self.assertEqual(1, fate.port, str(fate))
        if server.active and server.score_class in self.shares:
            a, weight = self.shares[server.score_class]
            total = score(a, weight, decode(n_af)) + score(1 - a, weight, decode(n_ff))
            self.leaves.report(server.slot, server.sid, min(0xFFFF, total), flow.hash)
        elif not server.active:
            self.leaves.report(server.slot, server.sid, None, flow.hash)

    def begin(self, vip: Vip, outcome: str = "ASSIGNED_CCLB4") -> tuple[Flow, Server]:
        """Check that a SYN reaches the server of the model, where it counts as one unit until the next report."""
        flow = self.new_flow(vip)
        self.wait_for_root(vip)
        sid = self.leaves.best(vip, flow.hash)
        assert sid is not None
        server = vip.server(sid)
        self.goes_to(server, flow.up("S", linux_syn(7)), outcome)
        self.leaves.add(server.slot, sid, vip.flow_unit, flow.hash)
        return flow, server

    def echoed(self, flow: Flow, server: Server) -> bytes:
        """Return the options of a segment whose client echoes this server's cookie."""
        return stamped(8, KEY.static_tsval(server.sid, flow.hash, 1))


def load(n_af: int, n_ff: int, a: float = 0.5, weight: float = 1.0) -> float:
    """Return the score in flows for quantisation codes, as the paper defines it: a * N_AF + (1 - a) * N_FF."""
    return (a * decode(n_af) + (1 - a) * decode(n_ff)) / weight


__all__ = ["UNIT", "VIP4", "VIP6", "BalancerTest", "load"]
