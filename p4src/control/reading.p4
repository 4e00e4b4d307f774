// SPDX-License-Identifier: Apache-2.0
// Reads the cookie of a packet: the server that a client's packet names (retrieving), or the loads that a server reports
// (insighting; CloudCookie, IV.B). Also looks up the server of the hash. Nothing here changes state.
control Reading(in headers_t hdr, inout metadata_t meta) {
    Retrieve() retrieve;
    Insight() insight;
    Maglev() maglev;

    apply {
        if (!IS_CHECK && hdr.tcp.isValid() && (hdr.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
            meta.is_new_connection = 1;
        }
        if (hdr.tcp_timestamp.isValid() || hdr.udp.isValid()) {
            meta.can_carry_cookie = 1;
        }
        if (meta.second_pass == 0) {
            if (meta.direction == Direction.DOWN) {
                insight.apply(hdr, meta);
            } else if (!IS_CHECK && meta.is_new_connection == 0) {
                retrieve.apply(hdr, meta);
            }
        }
        if (meta.direction == Direction.UP && (hdr.tcp.isValid() || hdr.quic_long.isValid() || IS_ERROR)) {
            maglev.apply(meta);
        }
    }
}
