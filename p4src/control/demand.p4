// Demand (Auspice, 1.2; docs/demand.md): handshakes by service and client's region, each at the site where its client comes in, whatever becomes of it.
//
// A handshake begins with a SYN, or with a datagram that may hold an Initial (RFC 9000, 14.1) under a connection id of the client's own choice. One that comes
// again is known by its connection, and by TCP's initial sequence number or eight bytes of the id, if no other handshake has taken its place since.
control Demand(in headers_t hdr, in metadata_t meta) {
    RecentHandshakes() recent;
    DemandCounter() handshakes;
    NewClient() new_client;

    bit<32> cell;

    // Cells of regions from 1 to regions - 1 are behind the service's first, which is of all others.
    action set_counter_range(bit<32> base, bit<16> regions) {
        cell = base;
        if (meta.region < regions) {
            cell = base + (bit<32>)meta.region;
        }
    }

    table service {
        key = { meta.vip_id: exact @name("vip_id"); }
        actions = { set_counter_range; NoAction; }
        const default_action = NoAction();
        size = VIPS;
    }

    apply {
        cell = 0;
        bit<32> fingerprint = meta.connection_hash;
        bit<1> begins = 0;
        if (meta.is_first == 1 && hdr.tcp.isValid()) {
            begins = 1;
            fingerprint = fingerprint ^ hdr.tcp.seq;
        } else if (meta.is_first == 1 && meta.carried.what == Carried.NOTHING && hdr.udp.length >= 8 + QUIC_INITIAL) {
            begins = 1;
            if (hdr.connection_id.isValid()) {
                fingerprint = fingerprint ^ hdr.connection_id.word[31:0];
            }
        }

        if (begins == 1) {
            if (service.apply().hit) {
                bit<1> again;
                recent.apply(meta.connection.index, fingerprint, meta.now, again);
                if (again == 0) {
                    handshakes.apply(cell);
                    if (meta.region == 0) {
                        bit<8> version = 6;
                        bit<48> prefix = hdr.ipv6.src[127:80];
                        if (hdr.ipv4.isValid()) {
                            version = 4;
                            prefix = 24w0 ++ hdr.ipv4.src[31:8];
                        }
                        new_client.apply(version, prefix); // in one place: one digest
                    }
                }
            }
        }
    }
}
