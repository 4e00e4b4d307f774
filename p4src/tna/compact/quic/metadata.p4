// SPDX-License-Identifier: Apache-2.0
// Metadata of the compact pipeline for QUIC alone (frontage.p4).
#ifndef FRONTAGE_TNA_COMPACT_QUIC_METADATA_P4
#define FRONTAGE_TNA_COMPACT_QUIC_METADATA_P4

#define PROFILE_METADATA \
    COMPACT_METADATA \
    bit<16> missing_udp;        /* bytes that UDP's header needs, beyond the length of the datagram */ \
    bit<16> missing_quic;       /* the same for QUIC's header */ \
    bit<16> quic_header_length; /* with UDP's */ \
    bit<16> excess;             /* bytes of the datagram beyond the end of the packet */ \
    bit<16> initial_space;      /* bytes that a datagram with an Initial has, but this one lacks */ \
    bit<1> has_sealed_id;       /* the connection id looks like a sealed one */ \
    bit<1> has_plain_id; \
    CIPHER_METADATA \
    bit<32> right_half;         /* n_ff (8) | x (1) | zero (19), behind 4 zeros */ \
    bit<1> is_bad_source;       /* a server's packet whose source is neither its address nor its cookie */ \
    bit<8> joined;              /* JOIN_* (tna/stateful.p4): the result of a JOIN of the handshake table */ \
    bit<1> uses_handshake;      /* the server is that of the handshake table */

#include "../metadata.p4"

#endif
