// SPDX-License-Identifier: Apache-2.0
// Egress: the bytes that the IP header promises, but the frame does not have. Ingress does not know the frame's length. The
// lengths are subtracted, because the condition of a branch cannot compare two fields.
#ifndef FRONTAGE_TNA_FRAME_LENGTH_P4
#define FRONTAGE_TNA_FRAME_LENGTH_P4

control FrameLength(in headers_t hdr, in bit<16> packet_length, out bit<16> missing) {
    bit<16> length;

    action add_other_bytes() {
        length = hdr.bridge.length |+| hdr.bridge.other_bytes;
    }

    action compare() {
        missing = length |-| packet_length;
    }

    apply {
        add_other_bytes();
        compare();
    }
}

#endif
