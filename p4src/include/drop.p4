// Why a packet was dropped: the index into FrontageIngress.drops. Nothing is dropped without one of these.
// The numbers are read by the controller (`frontage status`) from this file: keep one `#define DROP_NAME number // text` a line.
#ifndef FRONTAGE_DROP_P4
#define FRONTAGE_DROP_P4

#define DROP_NONE 0 // not dropped
#define DROP_PORT_UNKNOWN 1 // arrived on a port that no entry of `port` describes
#define DROP_TRUNCATED 2 // a header ends beyond the end of the packet
#define DROP_ETHERTYPE 3 // neither IPv4, IPv6 nor ARP
#define DROP_NOT_LOCAL_MAC 4 // Ethernet destination is not this port's address
#define DROP_IPV4_HEADER 5 // version is not 4, IHL below 5, or total length beyond the frame (RFC 1812, 5.2.2)
#define DROP_IPV4_CHECKSUM 6 // header checksum is wrong (RFC 1812, 5.2.2)
#define DROP_IPV6_HEADER 7 // version is not 6, or payload length beyond the frame (RFC 8200, 3)
#define DROP_MARTIAN_SOURCE 8 // source address is multicast, loopback or this-network (RFC 1812, 5.3.7; RFC 4291, 2.5, 2.7)
#define DROP_MULTICAST 9 // multicast or broadcast destination that no service of the switch answers
#define DROP_TTL 10 // TTL or hop limit used up
#define DROP_NEIGHBOR_NOT_LOCAL 11 // ARP or neighbor solicitation for an address that is not ours, or no request at all
#define DROP_NO_ROUTE 12 // no prefix matches the destination
#define DROP_NO_NEXT_HOP 13 // the route names a next hop that is not installed
#define DROP_VIP_FRAGMENT 14 // fragment to a VIP: later fragments have no ports to find the server by
#define DROP_VIP_NO_SERVICE 15 // to a VIP's address, a cookie prefix or our end of tunnels, but to nothing that is served there
#define DROP_VIP_EXTENSION 16 // to a VIP, with more IPv6 extension headers than the parser follows
#define DROP_TCP_HEADER 17 // to a VIP, TCP data offset below 5 or options beyond the packet (RFC 9293, 3.1)
#define DROP_TCP_FLAGS 18 // to a VIP, a flag combination that no TCP sends: none of FIN, SYN, RST, ACK; SYN with FIN or RST
#define DROP_VIP_NO_SERVER 19 // the VIP has no server to give the flow to
#define DROP_SERVER_GONE 20 // the flow's server was removed, or is another VIP's
#define DROP_SPOOFED_SOURCE 21 // a server's or real server's source address on a port of another side
#define DROP_UDP_HEADER 22 // of a VIP, UDP length below 8 or beyond the packet (RFC 768)
#define DROP_UDP_CHECKSUM 23 // of a VIP over IPv6, UDP checksum is zero (RFC 8200, 8.1)
#define DROP_QUIC_HEADER 24 // of a VIP, the part of QUIC's header that no version changes ends beyond the datagram (RFC 8999, 5)
#define DROP_QUIC_SMALL 25 // to a VIP, long header of no known handshake and server in a datagram below 1200 bytes (RFC 9000, 14.1)
#define DROP_QUIC_NO_CONNECTION 26 // to a VIP, short header whose connection id names no server, of no known handshake
#define DROP_COOKIE_FORGED 27 // to a cookie address that no installed key sealed, or that is none of the static form
#define DROP_COOKIE_SOURCE 28 // from a server's /64, with an interface id that no installed key sealed for this server
#define DROP_AIFO 29 // not admitted by AIFO to the queue of its port: too many wait, for its rank (docs/aifo.md)
#define DROP_TUNNEL_FORGED 30 // from a client's port, to an end of our tunnels: VXLAN, GRE, or what may hide one of them
#define DROP_TUNNEL_PEER 31 // a tunnel to this switch, from none of the peers on that side of it
#define DROP_TUNNEL_HEADER 32 // a tunnel's header that is cut, too long, fragmented, with options, no VXLAN with a VNI and no GRE with just a key
#define DROP_TUNNEL_ORIGIN 33 // a tunnel's VNI or key is of no site whose packets this peer may bring
#define DROP_TUNNEL_INNER 34 // what was in the tunnel is not sent to a service address
#define DROP_TUNNEL_SOURCE 35 // an answer in a tunnel, from another address than a service of who sent it
#define DROP_TUNNEL_NESTED 36 // a tunnel in a tunnel
#define DROP_NO_TUNNEL 37 // to a site, dispatcher or replica to which there is no tunnel
#define DROP_REAL_SERVER_SOURCE 38 // from a real server's port, from neither its own address nor a server for which it may send
#define DROP_REAL_SERVER_EXTERNAL 39 // to a real server's own address, from outside the site
#define DROP_REASONS 64

#endif
