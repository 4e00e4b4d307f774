// Drops what no correct TCP, UDP or QUIC sends to or from a VIP, each for a named reason. What is to a VIP's address but to no service is dropped
// already, and may get a better reason here.
control Transport(in headers_t hdr, inout metadata_t meta) {
    apply {
        // Of the segment or datagram; what is behind it in the frame is padding.
        bit<16> length;
        if (hdr.ipv4.isValid()) {
            length = hdr.ipv4.total_length - ((bit<16>)hdr.ipv4.ihl << 2);
        } else {
            length = hdr.ipv6.payload_length - ((bit<16>)meta.extension_units << 3);
        }

        if (meta.drop != DROP_NONE) {
            if (meta.fragment == 1) {
                meta.drop = DROP_VIP_FRAGMENT;
            } else if (meta.unparsed != DROP_NONE && !hdr.udp.isValid()) { // a datagram need not be QUIC's
                meta.drop = meta.unparsed;
            }
        } else if (hdr.udp.isValid()) {
            if (hdr.udp.length < 8 || hdr.udp.length > length) {
                meta.drop = DROP_UDP_HEADER;
            } else if (hdr.ipv6.isValid() && hdr.udp.checksum == 0) {
                meta.drop = DROP_UDP_CHECKSUM;
            } else if (hdr.quic_long.isValid()) {
                // Up to the length of the source's connection id.
                if (hdr.udp.length < 15 + (bit<16>)hdr.quic_long.dcid_length) {
                    meta.drop = DROP_QUIC_HEADER;
                }
            } else if (hdr.udp.length < 18) {
                meta.drop = DROP_QUIC_HEADER;
            }
        } else if (meta.unparsed != DROP_NONE) {
            meta.drop = meta.unparsed;
        } else if (meta.direction == Direction.UP) {
            if (length < (bit<16>)hdr.tcp.data_offset << 2) {
                meta.drop = DROP_TCP_HEADER;
            } else if ((hdr.tcp.flags & (TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK)) == 0
                       || ((hdr.tcp.flags & TCP_SYN) != 0 && (hdr.tcp.flags & (TCP_FIN | TCP_RST)) != 0)) {
                meta.drop = DROP_TCP_FLAGS;
            }
        }
        // A real server's packet is looked at by control/real_servers.p4.
        if (meta.drop == DROP_NONE && meta.direction == Direction.DOWN && meta.role != ROLE_SERVER && meta.role != ROLE_REAL_SERVER) {
            meta.drop = DROP_SPOOFED_SOURCE;
        }
    }
}
