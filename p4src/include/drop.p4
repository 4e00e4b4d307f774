// SPDX-License-Identifier: Apache-2.0
// Drop reasons: the indices of the counter FrontageIngress.drops. A control drops a packet with `meta.verdict = DROP_NAME`;
// every packet dropped in ingress has a reason. The controller reads the numbers from this file (`frontage status`): keep
// one `#define DROP_NAME number // text` per line.
#ifndef FRONTAGE_DROP_P4
#define FRONTAGE_DROP_P4

#define DROP_NONE 0 // not dropped
#define DROP_PORT_UNKNOWN 1 // ingress port without an entry in the table `port`
#define DROP_TRUNCATED 2 // a header extends beyond the end of the packet
#define DROP_ETHERTYPE 3 // neither IPv4, IPv6 nor ARP
#define DROP_NOT_LOCAL_MAC 4 // destination MAC is not the ingress port's
#define DROP_IPV4_HEADER 5 // version is not 4, IHL below 5, or total length beyond the frame (RFC 1812, 5.2.2)
#define DROP_IPV4_CHECKSUM 6 // wrong header checksum (RFC 1812, 5.2.2)
#define DROP_IPV6_HEADER 7 // version is not 6, or payload length beyond the frame (RFC 8200, 3)
#define DROP_MARTIAN_SOURCE 8 // source address is multicast, loopback or this-network (RFC 1812, 5.3.7; RFC 4291, 2.5, 2.7)
#define DROP_MULTICAST 9 // multicast or broadcast destination that the switch does not serve
#define DROP_TTL 10 // TTL or hop limit exceeded
#define DROP_NEIGHBOR_NOT_LOCAL 11 // ARP or neighbor solicitation for an address that is not the switch's, or not a valid request
#define DROP_NO_ROUTE 12 // no prefix matches the destination
#define DROP_NO_NEXT_HOP 13 // the route's next hop is not installed, or its group has no next hop
#define DROP_VIP_FRAGMENT 14 // fragment to a VIP: later fragments have no ports, so their server cannot be found
#define DROP_VIP_NO_SERVICE 15 // to the address of a VIP, a cookie prefix or a local tunnel endpoint, but not to a service there
#define DROP_VIP_EXTENSION 16 // to a VIP, with more IPv6 extension headers than the parser follows
#define DROP_TCP_HEADER 17 // to a VIP, TCP data offset below 5 or options beyond the packet (RFC 9293, 3.1)
#define DROP_TCP_FLAGS 18 // to a VIP, invalid TCP flags: none of FIN, SYN, RST, ACK; or SYN with FIN or RST
#define DROP_VIP_NO_SERVER 19 // the VIP has no server for the connection
#define DROP_SERVER_GONE 20 // the connection's server was removed, or belongs to another VIP
#define DROP_SPOOFED_SOURCE 21 // source address of a server or real server on a port of another role
#define DROP_UDP_HEADER 22 // to or from a VIP, UDP length below 8 or beyond the packet (RFC 768)
#define DROP_UDP_CHECKSUM 23 // to or from a VIP over IPv6, zero UDP checksum (RFC 8200, 8.1)
#define DROP_QUIC_HEADER 24 // to or from a VIP, truncated version-independent QUIC header (RFC 8999, 5)
#define DROP_QUIC_SMALL 25 // to a VIP, long header of no known handshake or server in a datagram below 1200 bytes (RFC 9000, 14.1)
#define DROP_QUIC_NO_CONNECTION 26 // to a VIP, short header of no known handshake whose connection id names no server
#define DROP_COOKIE_FORGED 27 // to a cookie address that no installed key sealed, or that is not a static cookie
#define DROP_COOKIE_SOURCE 28 // from a server's /64, with an interface id that no installed key sealed for this server
#define DROP_AIFO 29 // not admitted by AIFO to the egress queue: too long for the packet's rank (docs/aifo.md)
#define DROP_TUNNEL_FORGED 30 // from a client's port to a known tunnel endpoint: a tunnel, or a packet that may hide one
#define DROP_TUNNEL_PEER 31 // tunnel to this switch from an address that is not a peer on that side
#define DROP_TUNNEL_HEADER 32 // tunnel header truncated, too long, fragmented, with options, or of a kind that this peer may not send
#define DROP_TUNNEL_ORIGIN 33 // tunnel's VNI or key is not one that this peer may use
#define DROP_TUNNEL_INNER 34 // the inner packet of a tunnel is not for a service address
#define DROP_TUNNEL_SOURCE 35 // response in a tunnel whose source is not a service address of the sender
#define DROP_TUNNEL_NESTED 36 // a tunnel in a tunnel
#define DROP_NO_TUNNEL 37 // to a site, dispatcher, replica or remote server without a tunnel
#define DROP_REAL_SERVER_SOURCE 38 // from a real server's port, with a source that is neither its own nor a server it may send for
#define DROP_REAL_SERVER_EXTERNAL 39 // to a real server's own address, from outside the site
#define DROP_NEIGHBOR_ANSWER 40 // ARP reply or neighbor advertisement: the controller reads it (docs/neighbors.md), and it ends here
#define DROP_CHECK_NO_SERVER 41 // health check whose source port names no server of the VIP
#define DROP_ERROR_QUOTE 42 // ICMP error to or from a VIP whose quote is too short, of a later fragment, without ports, or not from the error's destination
#define DROP_SERVER_FRAGMENT 43 // fragment from a server's address: later fragments carry no ports, so the switch cannot find their VIP
#define DROP_REMOTE_SERVER_SOURCE 47 // in a remote server's tunnel, not from a server behind it; or a remote server's, not in its tunnel
#define DROP_TUNNEL_TOO_LONG 48 // to a remote server, longer than the tunnel carries, with IPv4 options or IPv6 extension headers
#define DROP_LIMIT_CLIENT_CONNECTIONS 50 // new connection above the limit of its client prefix (docs/limits.md)
#define DROP_LIMIT_CONNECTIONS 51 // new connection above the limit of its VIP
#define DROP_LIMIT_CLIENT_BANDWIDTH 52 // to a VIP, above the bandwidth of its client prefix
#define DROP_LIMIT_BANDWIDTH 53 // to a VIP, above the bandwidth of the VIP
#define DROP_SYN_COOKIE 54 // to a VIP under SYN flood, of no known connection and without a valid SYN cookie (docs/syn-flood.md)
#define DROP_REFUSED_SYN 56 // from a server, a SYN that it claims to refuse: no switch lets a server refuse a SYN
#define DROP_REASONS 64

#endif
