// SPDX-License-Identifier: Apache-2.0
// The server that last sent a packet of a connection with each hash index. Some packets answer a server's packet that has
// just left, but carry no cookie: a client's RST without timestamps, and an ICMP error that quotes too little. They find the
// server here, unless another connection with the same index has sent since.
//
// Only servers write entries, so clients cannot overwrite them. Entries need not expire: an old one names a server of the
// same addresses and ports, and the next packet of a server replaces it.
control Recent(in headers_t hdr, inout metadata_t meta) {
    RecentServers() servers;
    bit<1> writes;

    apply {
        meta.has_recent = 0;
        meta.recent_sid = meta.sid;
        writes = 0;
        if (meta.direction == Direction.DOWN && !IS_ERROR) {
            writes = 1;
        }
        if (writes == 1 || IS_ERROR || (meta.direction == Direction.UP && hdr.tcp.isValid() && (hdr.tcp.flags & TCP_RST) != 0)) {
            servers.apply(writes, meta.connection.index, meta.connection_hash, meta.recent_sid, meta.has_recent);
        }
    }
}
