/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* TCP over IPv4 or IPv6, with or without an Ethernet header: finding the timestamp option, and changing it. */
#pragma once

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/in.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "maps.h"

#define TCP_HEADER 20
#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_ACK 0x10
#define CHECKSUM_AT 16
#define OFFSET_AT 12
#define CK 0x08 /* TSval holds a dynamic cookie (docs/cookie.md) */

#define OPTION_END 0
#define OPTION_NOP 1
#define OPTION_TIMESTAMP 8
#define OPTION_MD5 19 /* RFC 2385 */
#define OPTION_AO 29  /* RFC 5925 */
#define TIMESTAMP_LENGTH 10
#define OPTIONS_MAX 40
#define EXTENSION_HEADERS_MAX 4

struct segment {
	struct connection connection; /* local is this host's side */
	__u32 ip;                     /* offset of the IP header in the packet */
	__u32 tcp;                    /* offset of the TCP header in the packet */
	__u32 payload;                /* bytes */
	__u32 seq;
	__u32 ack;
	__u32 options;    /* bytes */
	__u8 offset_byte; /* byte 12 of the header, and 13 */
	__u8 flags;
	__u32 timestamp; /* offset of TSval in the packet, zero without one */
	__u32 tsval;
	__u32 tsecr;
};

enum parsed { NOT_OURS, TCP, BAD };

static __always_inline void mapped(__u32 address[4], __u32 v4)
{
	address[0] = 0;
	address[1] = 0;
	address[2] = bpf_htonl(0xffff);
	address[3] = v4;
}

/* The fields of the kernel's packet from which its IP header is found; their offsets are relocated. */
struct sk_buff {
	unsigned char *head;
	unsigned char *data;
	__u16 network_header;
} __attribute__((preserve_access_index));

#define READ_FIELD(to, address, field)                                                                                 \
	bpf_probe_read_kernel(&(to), sizeof(to),                                                                       \
			      (const void *)((address) + bpf_core_field_offset(struct sk_buff, field)))

/* The offset of the IP header on a device without an Ethernet header. It is 0, except in packets that arrive from GRE: they
 * begin with the outer headers. A copy of the pointer to the packet is a plain number to the verifier. */
static __always_inline __u32 find_ip_header(struct __sk_buff *skb)
{
	struct __sk_buff *volatile pointer = skb;
	__u64 address = 0, head = 0, data = 0;
	__u16 network_header = 0;

	bpf_probe_read_kernel(&address, sizeof(address), (const void *)&pointer);
	READ_FIELD(head, address, head);
	READ_FIELD(data, address, data);
	READ_FIELD(network_header, address, network_header);
	return head + network_header - data;
}

static __always_inline int parse_ipv4(struct __sk_buff *skb, struct segment *s, int egress)
{
	struct connection *c = &s->connection;
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, s->ip, &ip, sizeof(ip)))
		return BAD;
	if (ip.protocol != IPPROTO_TCP)
		return NOT_OURS;
	if (ip.frag_off & bpf_htons(0x3fff)) {
		count(FRAGMENT);
		return NOT_OURS;
	}
	if (ip.ihl < 5)
		return BAD;
	mapped(c->local, egress ? ip.saddr : ip.daddr);
	mapped(c->remote, egress ? ip.daddr : ip.saddr);
	s->tcp = s->ip + ip.ihl * 4;
	return TCP;
}

static __always_inline int parse_ipv6(struct __sk_buff *skb, struct segment *s, int egress)
{
	struct connection *c = &s->connection;
	struct ipv6hdr ip;
	__u32 at = s->ip + sizeof(ip);
	__u8 next;

	if (bpf_skb_load_bytes(skb, s->ip, &ip, sizeof(ip)))
		return BAD;
	next = ip.nexthdr;
	for (int i = 0; i < EXTENSION_HEADERS_MAX && next != IPPROTO_TCP; i++) {
		struct ipv6_opt_hdr extension;

		if (next == IPPROTO_FRAGMENT) {
			count(FRAGMENT);
			return NOT_OURS;
		}
		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			return NOT_OURS;
		if (bpf_skb_load_bytes(skb, at, &extension, sizeof(extension)))
			return BAD;
		next = extension.nexthdr;
		at += (extension.hdrlen + 1) * 8;
	}
	if (next != IPPROTO_TCP)
		return NOT_OURS;
	__builtin_memcpy(c->local, egress ? &ip.saddr : &ip.daddr, sizeof(c->local));
	__builtin_memcpy(c->remote, egress ? &ip.daddr : &ip.saddr, sizeof(c->remote));
	s->tcp = at;
	return TCP;
}

/* Parse everything up to the options. */
static __always_inline int parse_segment(struct __sk_buff *skb, struct segment *s, int is_ethernet, int egress)
{
	__u8 header[TCP_HEADER] __attribute__((aligned(4)));
	__u32 length;
	int parsed;

	s->ip = is_ethernet ? ETH_HLEN : find_ip_header(skb);
	if (skb->protocol == bpf_htons(ETH_P_IP))
		parsed = parse_ipv4(skb, s, egress);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		parsed = parse_ipv6(skb, s, egress);
	else
		return NOT_OURS;
	if (parsed != TCP)
		return parsed;
	if (bpf_skb_load_bytes(skb, s->tcp, header, sizeof(header)))
		return BAD;
	length = (header[OFFSET_AT] >> 4) * 4;
	if (length < TCP_HEADER || s->tcp + length > skb->len)
		return BAD;
	s->connection.local_port = egress ? header[0] << 8 | header[1] : header[2] << 8 | header[3];
	s->connection.remote_port = egress ? header[2] << 8 | header[3] : header[0] << 8 | header[1];
	s->seq = bpf_ntohl(*(__u32 *)(header + 4));
	s->ack = bpf_ntohl(*(__u32 *)(header + 8));
	s->offset_byte = header[OFFSET_AT];
	s->flags = header[OFFSET_AT + 1];
	s->options = length - TCP_HEADER;
	s->payload = skb->len - s->tcp - length;
	return TCP;
}

/* Parse the options, in any order. A segment with a signature over its header counts as one without a timestamp,
 * because any change would invalidate the signature. */
static __always_inline void find_timestamp(struct __sk_buff *skb, struct segment *s)
{
	__u8 options[64] = {};
	__u32 length = s->options;
	__u32 at = 0;

	s->timestamp = 0;
	if (length < TIMESTAMP_LENGTH || length > OPTIONS_MAX ||
	    bpf_skb_load_bytes(skb, s->tcp + TCP_HEADER, options, length))
		return;
	for (int i = 0; i <= OPTIONS_MAX - TIMESTAMP_LENGTH; i++) {
		__u8 kind, size;

		/* No relevant option is shorter. */
		if (at + TIMESTAMP_LENGTH > length || at > OPTIONS_MAX - TIMESTAMP_LENGTH)
			return;
		kind = options[at];
		size = options[at + 1];
		if (kind == OPTION_END)
			return;
		if (kind == OPTION_MD5 || kind == OPTION_AO) {
			s->timestamp = 0;
			return;
		}
		if (kind == OPTION_TIMESTAMP && size == TIMESTAMP_LENGTH && !s->timestamp) {
			__builtin_memcpy(&s->tsval, options + at + 2, 4);
			__builtin_memcpy(&s->tsecr, options + at + 6, 4);
			s->tsval = bpf_ntohl(s->tsval);
			s->tsecr = bpf_ntohl(s->tsecr);
			s->timestamp = s->tcp + TCP_HEADER + at + 2;
		}
		if (kind != OPTION_NOP && size < 2)
			return;
		at += kind == OPTION_NOP ? 1 : size;
	}
}

/* The contribution of a word to the Internet checksum (RFC 1071): at an odd offset its bytes are swapped. */
static __always_inline __u32 share(__u32 word, __u32 offset)
{
	return offset & 1 ? word << 8 | word >> 24 : word;
}

static __always_inline __u32 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

/* Replace 4 bytes at `offset` and, if `set_ck`, set CK. The helper does not touch a checksum that the device computes
 * (CHECKSUM_PARTIAL), and segmentation copies the header to each segment. */
static __always_inline int rewrite(struct __sk_buff *skb, const struct segment *s, __u32 offset, __u32 from, __u32 to,
				   int set_ck)
{
	__u64 difference;

	from = bpf_htonl(from);
	to = bpf_htonl(to);
	difference = (__u64)(__u32)~share(from, offset - s->tcp) + share(to, offset - s->tcp);
	if (set_ck && !(s->offset_byte & CK)) {
		__u8 byte = s->offset_byte | CK;

		/* 0x0800 added to the header's sixteen-bit word 6. */
		difference += bpf_htons(CK << 8);
		if (bpf_skb_store_bytes(skb, s->tcp + OFFSET_AT, &byte, 1, 0))
			return -1;
	}
	if (bpf_skb_store_bytes(skb, offset, &to, sizeof(to), 0))
		return -1;
	return bpf_l4_csum_replace(skb, s->tcp + CHECKSUM_AT, 0, fold(difference), 0);
}
