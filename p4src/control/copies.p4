// SPDX-License-Identifier: Apache-2.0
// Redundancy routing (Artemis, 3.4.3): copies of a packet that may begin a handshake go to further sites. The mapping
// names a clone session (control/steering.p4) with one replica per site, whose replica id is the site's id. A copy is
// the packet as it arrived, so this control does what ingress would have done: it decrements the hop limit,
// encapsulates, and sets the next hop's MAC addresses.
control Copies(inout headers_t hdr, inout metadata_t meta, in bit<16> site) {
    Encapsulation() outer;

    action rewrite_macs(mac_t src_mac, mac_t dst_mac) {
        hdr.ethernet.src = src_mac;
        hdr.ethernet.dst = dst_mac;
    }

    table next_hop {
        key = { site: exact @name("site"); }
        actions = { rewrite_macs; NoAction; }
        const default_action = NoAction();
        size = SITES;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        } else {
            hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        }
        outer.apply(hdr, meta, Remote.SITE, site);
        next_hop.apply();
    }
}
