// SPDX-License-Identifier: Apache-2.0
// Learning of neighbors: sends what an ARP or neighbor discovery packet says about its sender to the controller, in a
// digest. The controller decides what to believe (docs/neighbors.md).

// Reads the packet, before a reply overwrites it (neighbor.p4).
control NeighborMessage(in headers_t hdr, inout metadata_t meta) {
    ipv4_t other_target; // the target of an ARP packet XOR its sender

    action read_source() {
        meta.sender.kind = NEIGHBOR_NONE;
        meta.sender.mac = 0;
        meta.sender.source = hdr.ethernet.src;
    }

    action read_arp() {
        meta.sender.address = 96w0 ++ hdr.arp.sender;
        meta.sender.mac = hdr.arp.sender_mac;
    }

    action compare_target() {
        other_target = hdr.arp.target ^ hdr.arp.sender;
    }

    action read_solicitation() {
        meta.sender.address = hdr.ipv6.src;
    }

    action read_advertisement() {
        meta.sender.address = hdr.ndp.target;
    }

    action read_option() {
        meta.sender.mac = hdr.ndp_option.mac;
    }

    apply {
        read_source();
        if (hdr.arp.isValid()) {
            read_arp();
            compare_target();
            if (hdr.arp.protocol_type == ETHERTYPE_IPV4 && hdr.arp.hardware_type == 1) {
                if (hdr.arp.operation == 2) {
                    meta.sender.kind = NEIGHBOR_ARP_REPLY;
                } else if (hdr.arp.operation == 1) {
                    meta.sender.kind = NEIGHBOR_ARP_REQUEST;
                    if (other_target == 0) {
                        meta.sender.kind = NEIGHBOR_ARP_ANNOUNCEMENT;
                    }
                }
            }
        } else if (hdr.ndp.isValid()) {
            if (hdr.icmp.icmp_type == NDP_ADVERTISEMENT) {
                read_advertisement();
                meta.sender.kind = NEIGHBOR_NDP_UNSOLICITED;
                if (hdr.ndp.solicited == 1) {
                    meta.sender.kind = NEIGHBOR_NDP_ADVERTISEMENT;
                }
                if (hdr.ndp_option.isValid() && hdr.ndp_option.option_type == 2) { // target link-layer address
                    read_option();
                }
            } else {
                read_solicitation();
                if (hdr.ndp_option.isValid() && hdr.ndp_option.option_type == 1 // source link-layer address
                    && meta.has_no_source == 0) {
                    meta.sender.kind = NEIGHBOR_NDP_SOLICITATION;
                    read_option();
                }
            }
        }
    }
}

// Sends the digest if the packet is valid and concerns the switch.
control Learning(inout metadata_t meta) {
    NewNeighbor() new_neighbor;

    apply {
        bit<1> learns = 0;
        if (meta.NEIGHBOR_VERDICT == VERDICT_REPLY) {
            if (meta.sender.kind == NEIGHBOR_ARP_REQUEST || meta.sender.kind == NEIGHBOR_NDP_SOLICITATION) {
                learns = 1;
            }
        } else if (meta.NEIGHBOR_VERDICT == DROP_NEIGHBOR_ANSWER) {
            learns = 1;
        } else if (meta.NEIGHBOR_VERDICT == DROP_NEIGHBOR_NOT_LOCAL && meta.sender.kind == NEIGHBOR_ARP_ANNOUNCEMENT) {
            learns = 1;
        }
        if (learns == 1) {
            new_neighbor.apply(meta);
        }
    }
}
