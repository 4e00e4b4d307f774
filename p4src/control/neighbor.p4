// SPDX-License-Identifier: Apache-2.0
// Replies to ARP (RFC 826), neighbor solicitations (RFC 4861) and pings for the switch's own addresses: gateways,
// VIPs and tunnel endpoints. A reply leaves by the port on which the request arrived. ARP replies and neighbor
// advertisements, which answer requests of the controller, end here (learning.p4).
control Neighbor(inout headers_t hdr, inout metadata_t meta) {
    action reply() {
        hdr.ethernet.dst = hdr.ethernet.src;
        meta.egress_port = meta.ingress_port;
        meta.NEIGHBOR_VERDICT = VERDICT_REPLY;
    }

    action not_local() {
        meta.NEIGHBOR_VERDICT = DROP_NEIGHBOR_NOT_LOCAL;
    }

    action answer() {
        meta.NEIGHBOR_VERDICT = DROP_NEIGHBOR_ANSWER;
    }

    action arp_reply(mac_t mac) {
        reply();
        hdr.ethernet.src = mac;
        hdr.arp.operation = 2;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.sender_mac = mac;
        ipv4_t requester = hdr.arp.sender;
        hdr.arp.sender = hdr.arp.target;
        hdr.arp.target = requester;
    }

    table arp {
        key = { hdr.arp.target: exact @name("target"); }
        actions = { arp_reply; not_local; }
        const default_action = not_local();
        size = NEIGHBORS;
    }

    action ndp_reply(mac_t mac) {
        reply();
        hdr.ethernet.src = mac;
        hdr.ipv6.dst = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ndp.target;
        hdr.ipv6.hop_limit = 255;
        hdr.ipv6.payload_length = 32;
        hdr.icmp.icmp_type = NDP_ADVERTISEMENT;
        hdr.ndp.router = 1;
        hdr.ndp.solicited = 1;
        hdr.ndp.override = 1;
        hdr.ndp.reserved = 0;
        hdr.ndp_option.setValid();
        hdr.ndp_option.option_type = 2; // target link-layer address
        hdr.ndp_option.length = 1;
        hdr.ndp_option.mac = mac;
        meta.is_advertisement = 1;
    }

    table ndp {
        key = { hdr.ndp.target: exact @name("target"); }
        actions = { ndp_reply; not_local; }
        const default_action = not_local();
        size = NEIGHBORS;
    }

    action echo_reply() {
        reply();
        hdr.ethernet.src = meta.port_mac;
    }

    table echo4 {
        key = { hdr.ipv4.dst: exact @name("dst"); }
        actions = { echo_reply; NoAction; }
        const default_action = NoAction();
        size = NEIGHBORS;
    }

    table echo6 {
        key = { hdr.ipv6.dst: exact @name("dst"); }
        actions = { echo_reply; NoAction; }
        const default_action = NoAction();
        size = NEIGHBORS;
    }

    action swap4() {
        ipv4_t requester = hdr.ipv4.src;
        hdr.ipv4.src = hdr.ipv4.dst;
        hdr.ipv4.dst = requester;
        hdr.ipv4.ttl = 64;
        hdr.icmp.icmp_type = ICMP_ECHO_REPLY;
    }

    action swap6() {
        ipv6_t requester = hdr.ipv6.src;
        hdr.ipv6.src = hdr.ipv6.dst;
        hdr.ipv6.dst = requester;
        hdr.ipv6.hop_limit = 64;
        hdr.icmp.icmp_type = ICMPV6_ECHO_REPLY;
    }

    action add_to_icmp_checksum(bit<16> difference) {
        hdr.icmp.checksum = hdr.icmp.checksum + difference;
    }

    apply {
        if (hdr.arp.isValid()) {
            if (hdr.arp.protocol_type != ETHERTYPE_IPV4 || hdr.arp.hardware_type != 1) {
                not_local();
            } else if (hdr.arp.operation == 1) {
                arp.apply();
            } else if (hdr.arp.operation == 2) {
                answer();
            } else {
                not_local();
            }
        } else if (hdr.ndp.isValid()) {
            // Hop limit 255 proves that the packet comes from this link (RFC 4861, 7.1.1).
            if (hdr.ipv6.hop_limit == 255 && hdr.icmp.icmp_code == 0 && hdr.ipv6.next_header == PROTO_ICMPV6
                && meta.parse_failure == DROP_NONE) {
                if (hdr.icmp.icmp_type == NDP_ADVERTISEMENT) {
                    answer();
                } else {
                    ndp.apply();
                }
            } else {
                not_local();
            }
            if (meta.NEIGHBOR_VERDICT == VERDICT_REPLY && meta.has_no_source == 1) {
                // The requester has no address yet: reply to all nodes (RFC 4861, 7.2.4).
                hdr.ipv6.dst = 0xff020000000000000000000000000001;
                hdr.ethernet.dst = 0x333300000001;
                hdr.ndp.solicited = 0;
            }
        } else if (hdr.ethernet.dst[40:40] == 1) {
            meta.NEIGHBOR_VERDICT = DROP_MULTICAST;
        } else if (hdr.icmp.isValid()) {
            if (hdr.ipv4.isValid() && hdr.icmp.icmp_type == ICMP_ECHO_REQUEST && hdr.icmp.icmp_code == 0) {
                if (echo4.apply().hit) {
                    swap4();
                    // Incremental update for one changed word (RFC 1624), with the carry.
                    if (hdr.icmp.checksum < 0xf800) {
                        add_to_icmp_checksum(0x0800);
                    } else {
                        add_to_icmp_checksum(0x0801);
                    }
                }
            } else if (hdr.ipv6.isValid() && hdr.ipv6.next_header == PROTO_ICMPV6
                && hdr.icmp.icmp_type == ICMPV6_ECHO_REQUEST && hdr.icmp.icmp_code == 0) {
                if (echo6.apply().hit) {
                    swap6();
                    if (hdr.icmp.checksum[15:8] == 0 || hdr.icmp.checksum == 0x0100) {
                        add_to_icmp_checksum(0xfeff); // -0x0100
                    } else {
                        add_to_icmp_checksum(0xff00);
                    }
                }
            }
        }
    }
}
