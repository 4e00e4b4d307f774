// SPDX-License-Identifier: Apache-2.0
// Bytes that the IP header promises beyond the `capacity` of the frame for the IP packet.
control Excess(in headers_t hdr, in bit<16> capacity, out bit<16> excess) {
    bit<16> length;

    action set_length6() {
        length = hdr.ipv6.payload_length |+| 40;
    }

    action subtract_capacity() {
        excess = length |-| capacity;
    }

    apply {
        length = hdr.ipv4.total_length;
        if (hdr.ipv6.isValid()) {
            set_length6();
        }
        subtract_capacity();
    }
}
