// SPDX-License-Identifier: Apache-2.0
// The parser of egress. It parses only packets that egress may rewrite: by marks of ECN, or as copies of first flights,
// which get the outer headers of a tunnel. Ingress has checked their headers.
#ifndef FRONTAGE_TNA_EGRESS_PARSER_P4
#define FRONTAGE_TNA_EGRESS_PARSER_P4

parser FrontageEgressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                            out egress_intrinsic_metadata_t eg_intr_md) {
    Checksum() ipv4_residue;

    state start {
        packet.extract(eg_intr_md);
        bit<8> kind = packet.lookahead<bit<8>>();
        transition select(kind) {
            INTERNAL_BRIDGE: bridge;
            INTERNAL_COPY: copy;
            INTERNAL_WORKER: worker;
        }
    }

    state worker {
        packet.extract(hdr.worker);
        transition accept;
    }

#ifdef WITHOUT_EGRESS_REWRITES
    state bridge {
        packet.extract(hdr.bridge);
        transition accept;
    }

    state copy {
        transition reject;
    }
#else
    state bridge {
        packet.extract(hdr.bridge);
        transition select(hdr.bridge.discipline, hdr.bridge.has_outer) {
            ((bit<8>)Discipline.NONE, _): accept;
            (_, 1): outer_ethernet;
            default: ethernet;
        }
    }

    state copy {
        packet.extract(hdr.copy);
        transition ethernet;
    }

    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state outer_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: outer_ipv4;
            default: outer_ipv6;
        }
    }

    state outer_ipv4 {
        packet.extract(hdr.outer_ipv4);
        transition select(hdr.outer_ipv4.protocol) {
            PROTO_UDP: vxlan;
            default: gre;
        }
    }

    state outer_ipv6 {
        packet.extract(hdr.outer_ipv6);
        transition select(hdr.outer_ipv6.next_header) {
            PROTO_UDP: vxlan;
            default: gre;
        }
    }

    state vxlan {
        packet.extract(hdr.outer_ports);
        packet.extract(hdr.outer_udp);
        packet.extract(hdr.vxlan);
        packet.extract(hdr.inner_ethernet);
        transition select(hdr.inner_ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state gre {
        packet.extract(hdr.gre);
        transition select(hdr.gre.protocol) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_residue.subtract({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.ttl, hdr.ipv4.protocol,
                                hdr.ipv4.checksum, hdr.ipv4.src, hdr.ipv4.dst });
        meta.ipv4_residue = ipv4_residue.get();
        transition accept;
    }

    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
#endif
}

#endif
