// Redundancy routing (Artemis, 3.4.3): a packet that may begin a handshake goes to further sites too. Each copy is a replica of the clone session that the
// mapping names (control/steering.p4), with the site's id as its number, and is the packet as it came in; what ingress would have done with it is done
// here: the hop limit, the tunnel, the next hop.
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
