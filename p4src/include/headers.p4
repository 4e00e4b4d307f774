// SPDX-License-Identifier: Apache-2.0
#ifndef FRONTAGE_HEADERS_P4
#define FRONTAGE_HEADERS_P4

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<128> ipv6_t;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<16> ETHERTYPE_ETHERNET = 0x6558; // a bridged frame (RFC 1701)

const bit<8> PROTO_HOPOPT = 0;
const bit<8> PROTO_ICMP = 1;
const bit<8> PROTO_IPV4 = 4; // IP in IP (RFC 2003, RFC 2473)
const bit<8> PROTO_TCP = 6;
const bit<8> PROTO_UDP = 17;
const bit<8> PROTO_IPV6 = 41; // (RFC 2473, RFC 4213)
const bit<8> PROTO_ROUTING = 43;
const bit<8> PROTO_FRAGMENT = 44;
const bit<8> PROTO_GRE = 47;
const bit<8> PROTO_ICMPV6 = 58;
const bit<8> PROTO_DSTOPT = 60;

const bit<8> ICMP_ECHO_REPLY = 0;
const bit<8> ICMP_UNREACHABLE = 3;
const bit<8> ICMP_FRAGMENTATION_NEEDED = 4; // the code
const bit<8> ICMP_ECHO_REQUEST = 8;
const bit<8> ICMP_TIME_EXCEEDED = 11;
const bit<8> ICMP_PARAMETER_PROBLEM = 12;
const bit<8> ICMPV6_UNREACHABLE = 1;
const bit<8> ICMPV6_TOO_BIG = 2;
const bit<8> ICMPV6_TIME_EXCEEDED = 3;
const bit<8> ICMPV6_PARAMETER_PROBLEM = 4;
const bit<8> ICMPV6_ECHO_REQUEST = 128;
const bit<8> ICMPV6_ECHO_REPLY = 129;
const bit<8> NDP_SOLICITATION = 135;
const bit<8> NDP_ADVERTISEMENT = 136;

const bit<8> TCP_FIN = 0x01;
const bit<8> TCP_SYN = 0x02;
const bit<8> TCP_RST = 0x04;
const bit<8> TCP_ACK = 0x10;

const bit<16> TCP_MSS_OPTION = 0x0204; // kind and length

// RFC 3168, 5
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_ECT1 = 1;
const bit<2> ECN_ECT0 = 2;
const bit<2> ECN_CE = 3;

header ethernet_t {
    mac_t dst;
    mac_t src;
    bit<16> ether_type;
}

// RFC 826, for IPv4 over Ethernet
header arp_t {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_t sender_mac;
    ipv4_t sender;
    mac_t target_mac;
    ipv4_t target;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

header ipv6_h {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    ipv6_t src;
    ipv6_t dst;
}

// Options and extension headers are kept as opaque words, so that they leave unchanged.
header word_t {
    bit<32> data;
}

// Each 8 bytes of an IPv6 extension header; the first ones hold its type and length (RFC 8200, 4).
header ipv6_extension_t {
    bit<8> next_header;
    bit<8> length; // in 8-byte units beyond the first
    bit<48> data;
}

// The part that ICMP and ICMPv6 share.
header icmp_t {
    bit<8> icmp_type;
    bit<8> icmp_code;
    bit<16> checksum;
}

// The rest of an error's header: the MTU of a link, a pointer, or zero (RFC 792; RFC 4443, 3). The packet that caused the
// error follows, or its beginning.
header icmp_error_t {
    bit<32> data;
}

// Neighbor solicitation and advertisement (RFC 4861, 4.3, 4.4), after icmp_t.
header ndp_t {
    bit<1> router;
    bit<1> solicited;
    bit<1> override;
    bit<29> reserved;
    ipv6_t target;
}

// The link-layer address option of either (RFC 4861, 4.6.1).
header ndp_option_t {
    bit<8> option_type;
    bit<8> length;
    mac_t mac;
}

// The part that TCP and UDP share.
header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

header tcp_t {
    bit<32> seq;
    bit<32> ack;
    bit<4> data_offset;
    bit<1> ck; // TSval holds a dynamic cookie (docs/cookie.md); zero outside the data centre
    bit<1> second_hop; // the server may refuse the packet, or has refused it (docs/second-hop.md); zero for clients
    bit<2> reserved;
    bit<8> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

// The timestamp option (RFC 7323, 3.2): it begins in the second half of a word and fills the next two.
header tcp_timestamp_t {
    bit<16> before; // two NOPs, or SACK-permitted
    bit<8> kind;
    bit<8> length;
    bit<32> tsval;
    bit<32> tsecr;
}

header udp_t {
    bit<16> length;
    bit<16> checksum;
}

// The version-independent part of a long header (RFC 8999, 5.1); the destination connection id follows.
header quic_long_t {
    bit<1> long;
    bit<7> specific;
    bit<32> version;
    bit<8> dcid_length;
}

// The version-independent part of a short header (RFC 8999, 5.2). A connection id follows, whose length only the
// server knows.
header quic_short_t {
    bit<1> long;
    bit<7> specific;
}

// A connection id that one of our servers chose, without its last 3 bytes (docs/cookie.md).
header connection_id_t {
    bit<3> config; // of QUIC-LB: the epoch, or CID_PLAIN
    bit<5> length; // of the rest of the connection id
    bit<64> word;
}

const bit<3> CID_PLAIN = 2;
const bit<8> CID_LENGTH = 12;

// An operation of the controller on one leaf of a VIP's tournament tree (control/tree.p4), or PACKET_OUT_SEND: the payload
// is a frame that leaves by the port `slot`.
@controller_header("packet_out")
header packet_out_t {
    bit<8> op;
    bit<8> depth;
    bit<16> slot;
    bit<16> sid;
    bit<16> score;
}

// RFC 7348, 5
header vxlan_t {
    bit<8> flags;
    bit<24> reserved;
    bit<24> vni;
    bit<8> reserved2;
}

const bit<16> VXLAN_PORT = 4789;
const bit<8> VXLAN_HAS_VNI = 0x08;

// RFC 2784 with the key of RFC 2890
header gre_t {
    bit<16> flags; // and version
    bit<16> protocol;
    bit<32> key;
}

const bit<16> GRE_HAS_KEY = 0x2000; // and no other flag, version 0

#ifndef WITHOUT_REMOTE_SERVERS
// RFC 2784 without a key
header gre_keyless_t {
    bit<16> flags; // and version
    bit<16> protocol;
}

const bit<16> GRE_PLAIN = 0; // no flags, version 0

// RFC 8926, 3.4
header geneve_t {
    bit<2> version;
    bit<6> options_length; // in words
    bit<1> is_control;
    bit<1> has_critical_options;
    bit<6> reserved;
    bit<16> protocol;
    bit<24> vni;
    bit<8> reserved2;
}

const bit<16> GENEVE_PORT = 6081;

// ICMP's "fragmentation needed" (RFC 1191, 4), whose first 16 bits of the MTU are unused, and ICMPv6's "packet too big"
// (RFC 4443, 3.2). The packet's own headers follow.
header too_long_t {
    bit<8> icmp_type;
    bit<8> icmp_code;
    bit<16> checksum;
    bit<32> mtu;
}
#endif

#define IPV4_OPTION_WORDS 10
#ifndef IPV6_EXTENSION_UNITS
#define IPV6_EXTENSION_UNITS 8
#endif
#define TCP_OPTION_WORDS 10
#define SYN_OPTION_WORDS 7

struct headers_t {
    ARCHITECTURE_HEADERS
    packet_out_t packet_out;
    ethernet_t ethernet;

#ifndef WITHOUT_STEERING
    // outer headers of a tunnel
    ipv4_h outer_ipv4;
    ipv6_h outer_ipv6;
    ports_t outer_ports;
    udp_t outer_udp;
    vxlan_t vxlan;
    gre_t gre;
#ifndef WITHOUT_REMOTE_SERVERS
    gre_keyless_t gre_keyless;
    geneve_t geneve;
    too_long_t too_long;
#endif
    ethernet_t inner_ethernet;
#endif

    arp_t arp;
    ipv4_h ipv4;
    word_t[IPV4_OPTION_WORDS] ipv4_options;
    ipv6_h ipv6;
    ipv6_extension_t[IPV6_EXTENSION_UNITS] ipv6_extensions;
    icmp_t icmp;
#ifndef WITHOUT_ICMP_ERRORS
    // the packet that an ICMP error quotes
    icmp_error_t icmp_error;
    ipv4_h quoted_ipv4;
    ipv6_h quoted_ipv6;
    ports_t quoted_ports;
    tcp_t quoted_tcp;
    word_t quoted_mss; // of a SYN-ACK; it precedes the timestamps
    tcp_timestamp_t quoted_timestamp;
    udp_t quoted_udp;
#endif
    ndp_t ndp;
    ndp_option_t ndp_option;
    ports_t ports;
    tcp_t tcp;
    word_t[TCP_OPTION_WORDS] tcp_options; // those before the timestamp option; later ones stay payload
    tcp_timestamp_t tcp_timestamp;
#ifndef WITHOUT_SYN_DEFENCE
    word_t[SYN_OPTION_WORDS] syn_options; // those of a SYN behind the timestamp option
#endif
    udp_t udp;
    quic_long_t quic_long;
    quic_short_t quic_short;
    connection_id_t connection_id;
}

#endif
