#ifndef HEADERS_P4
#define HEADERS_P4

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> id;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

#define IPV4_FIELDS(h) { h.version, h.ihl, h.tos, h.total_length, h.id, h.flags, \
                         h.fragment, h.ttl, h.protocol, h.src, h.dst }

#endif
