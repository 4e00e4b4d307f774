// SPDX-License-Identifier: Apache-2.0
// ICMP errors about packets of VIPs (docs/icmp.md). An error quotes the packet that caused it, so the switch treats the
// error like a reply to that packet: for a while, the headers hold the reply that the receiver would have sent.
//
//     quoted packet from a VIP to a client    the reply is a client's packet that echoes the quoted TSval. The server is
//                                             found as usual, and gets the error, with a quote of its own packet.
//     quoted packet from a client to a DIP    the reply is the server's packet. The error goes to the client, from the
//                                             VIP, with a quote of the client's own packet.
//     any other quoted packet                 the error is forwarded unchanged
//
// An error changes no state.

// Puts a reply to the quoted packet into the headers.
control QuoteReply(inout headers_t hdr, inout metadata_t meta) {
    action use_quoted_ports() {
        hdr.ports.setValid();
        hdr.ports.src_port = hdr.quoted_ports.dst_port;
        hdr.ports.dst_port = hdr.quoted_ports.src_port;
    }

    action use_quoted_segment() {
        use_quoted_ports();
        hdr.tcp.setValid();
        hdr.tcp.ck = 0;
        hdr.tcp.second_hop = 0;
        hdr.tcp.flags = TCP_ACK;
    }

    action use_quoted_timestamp() {
        hdr.tcp_timestamp.setValid();
        hdr.tcp_timestamp.tsval = 0;
        hdr.tcp_timestamp.tsecr = hdr.quoted_timestamp.tsval;
    }

    action use_quoted_datagram() {
        use_quoted_ports();
        hdr.udp.setValid();
    }

    action use_quoted_ipv4() {
        meta.protocol = hdr.quoted_ipv4.protocol;
        meta.reporter = 96w0 ++ hdr.ipv4.src;
        hdr.ipv4.src = hdr.quoted_ipv4.dst;
    }

    action use_quoted_ipv6() {
        meta.protocol = hdr.quoted_ipv6.next_header;
        meta.reporter = hdr.ipv6.src;
        hdr.ipv6.src = hdr.quoted_ipv6.dst;
    }

    // Bytes of the smallest quote, up to the ports and 4 bytes more (RFC 792), that the packet does not have.
    bit<16> missing;

    apply {
        if (hdr.icmp_error.isValid()) {
            missing = 0;
            if (hdr.ipv4.isValid()) {
                missing = (meta.ipv4_header_length + 36) |-| hdr.ipv4.total_length;
            } else {
                missing = (meta.extension_bytes + 56) |-| hdr.ipv6.payload_length;
            }
            if (!hdr.quoted_ports.isValid() || missing != 0) {
                meta.is_bad_quote = 1;
            } else {
                meta.is_error = 1;
                if (hdr.ipv4.isValid()) {
                    if (hdr.quoted_ipv4.src != hdr.ipv4.dst) {
                        meta.is_bad_quote = 1;
                    }
                    use_quoted_ipv4();
                } else {
                    if (hdr.quoted_ipv6.src != hdr.ipv6.dst) {
                        meta.is_bad_quote = 1;
                    }
                    use_quoted_ipv6();
                }
                if (meta.protocol == PROTO_TCP) {
                    use_quoted_segment();
                    if (hdr.quoted_timestamp.isValid()) {
                        use_quoted_timestamp();
                    }
                } else {
                    use_quoted_datagram();
                }
            }
        }
    }
}

// Restores the source of an error, which is its sender's. Errors from the servers' side keep the VIP as source.
control ReporterRestore(inout headers_t hdr, in metadata_t meta) {
    apply {
        if (IS_ERROR && meta.direction != Direction.DOWN) {
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.src = meta.reporter[31:0];
            } else {
                hdr.ipv6.src = meta.reporter;
            }
        }
    }
}

// Removes the reply, after the quote has got the addresses and ports of the packet as its sender knows it.
control QuoteRewrite(inout headers_t hdr, inout metadata_t meta) {
    ReporterRestore() reporter_restore;

    action remove_reply() {
        hdr.ports.setInvalid();
        hdr.tcp.setInvalid();
        hdr.tcp_timestamp.setInvalid();
        hdr.udp.setInvalid();
    }

    apply {
        if (IS_ERROR) {
            if (meta.direction == Direction.UP) {
                hdr.quoted_ports.src_port = hdr.ports.dst_port;
                if (hdr.ipv4.isValid()) {
                    hdr.quoted_ipv4.src = hdr.ipv4.dst;
                } else {
                    hdr.quoted_ipv6.src = hdr.ipv6.dst;
                }
            } else if (meta.direction == Direction.DOWN) {
                hdr.quoted_ports.dst_port = hdr.ports.src_port;
                if (hdr.ipv4.isValid()) {
                    hdr.quoted_ipv4.dst = hdr.ipv4.src;
                } else {
                    hdr.quoted_ipv6.dst = hdr.ipv6.src;
                }
            }
            reporter_restore.apply(hdr, meta);
            remove_reply();
        }
    }
}

// The outcome of an error that goes to a server.
control IcmpErrorOutcome(inout metadata_t meta) {
    apply {
        if (IS_ERROR && meta.direction == Direction.UP) {
            if (meta.outcome == OUTCOME_HASHED_NO_COOKIE || meta.outcome == OUTCOME_HASHED_BAD_COOKIE) {
                meta.outcome = OUTCOME_ERROR_HASHED;
            } else {
                meta.outcome = OUTCOME_ERROR_RETRIEVED;
            }
        }
    }
}
