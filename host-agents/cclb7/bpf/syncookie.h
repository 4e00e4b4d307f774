/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Connections whose SYN the switch answered (docs/syn-flood.md). The client's acknowledgment carries the initial
 * sequence number of that answer, a keyed hash. If it is valid, the kernel creates the connection as for a SYN cookie
 * of its own.
 */
#pragma once

#include "packet.h"

#define TCP_RST 0x04
#define HASH_BITS 26
#define OPTION_BITS 5
#define NO_WINDOW_SCALE 0xf
/* The window scale that the switch offers in the server's place (p4src/include/metadata.p4). */
#define OFFERED_WINDOW_SCALE 7
#define MIN_MSS_IPV6 1220
#define TCP_LISTEN 10

struct sip {
	__u32 v0, v1, v2, v3;
};

static __always_inline __u32 rotate(__u32 value, __u32 bits)
{
	return value << bits | value >> (32 - bits);
}

static __always_inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 5) ^ s->v0;
	s->v0 = rotate(s->v0, 16);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 8) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 7) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v2;
	s->v2 = rotate(s->v2, 16);
}

static __always_inline void sip_word(struct sip *s, __u32 word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

/* HalfSipHash-2-4 of the client's address, port and initial sequence number, and of the rest of the cookie. */
static __always_inline __u32 cookie_hash(const struct syn_key *key, const struct connection *c, __u32 fields,
					 __u32 client_isn)
{
	struct sip s = { key->k0, key->k1, 0x6c796765 ^ key->k0, 0x74656462 ^ key->k1 };
	__u32 bytes = 12;

	if (c->remote[0] || c->remote[1] || c->remote[2] != bpf_htonl(0xffff)) {
		bytes = 24;
		sip_word(&s, bpf_ntohl(c->remote[0]));
		sip_word(&s, bpf_ntohl(c->remote[1]));
		sip_word(&s, bpf_ntohl(c->remote[2]));
	}
	sip_word(&s, bpf_ntohl(c->remote[3]));
	sip_word(&s, (__u32)c->remote_port << 16 | fields);
	sip_word(&s, client_isn);
	sip_word(&s, bytes << 24);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v1 ^ s.v3;
}

/* The kernel's struct bpf_tcp_req_attrs. */
struct request_attributes {
	__u32 rcv_tsval;
	__u32 rcv_tsecr;
	__u16 mss;
	__u8 rcv_wscale;
	__u8 snd_wscale;
	__u8 ecn_ok;
	__u8 wscale_ok;
	__u8 sack_ok;
	__u8 tstamp_ok;
	__u8 usec_ts_ok;
	__u8 reserved[3];
};

/* The kernel's function bpf_sk_assign_tcp_reqsk. The agent replaces this number in the object by that of the function
 * in the kernel's BTF, or the call by a failure if the kernel lacks the function (src/kfunc.rs). */
static int (*const assign_request)(struct __sk_buff *skb, void *sk, struct request_attributes *attributes,
				   int size) = (void *)0x5c00c1e5;

/* Let the kernel create the connection when it processes this packet. */
static __always_inline int assign(struct __sk_buff *skb, const struct connection *c,
				  struct request_attributes *attributes)
{
	struct bpf_sock_tuple tuple = {};
	__u32 size = sizeof(tuple.ipv4);
	struct bpf_sock *sk;
	int error = -1;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		tuple.ipv4.saddr = c->remote[3];
		tuple.ipv4.daddr = c->local[3];
		tuple.ipv4.sport = bpf_htons(c->remote_port);
		tuple.ipv4.dport = bpf_htons(c->local_port);
	} else {
		size = sizeof(tuple.ipv6);
		__builtin_memcpy(tuple.ipv6.saddr, c->remote, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, c->local, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = bpf_htons(c->remote_port);
		tuple.ipv6.dport = bpf_htons(c->local_port);
	}
	sk = bpf_skc_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return error;
	if (sk->state == TCP_LISTEN) {
		void *listener = bpf_skc_to_tcp_sock(sk);

		if (listener)
			error = assign_request(skb, listener, attributes, sizeof(*attributes));
	}
	bpf_sk_release(sk);
	return error;
}

static __always_inline __u16 mss_of(__u32 code)
{
	switch (code) {
	case 0:
		return 536;
	case 1:
		return 1024;
	case 2:
		return 1220;
	case 3:
		return 1300;
	case 4:
		return 1400;
	case 5:
		return 1440;
	case 6:
		return 1460;
	default:
		return 8940;
	}
}

/* If the segment acknowledges an answer of the switch, let the kernel create the connection and return 1. The options of
 * clients with timestamps are in the clock of TSecr, and the server's clock continues after it. */
static __noinline int complete_handshake(struct __sk_buff *skb, const struct segment *s)
{
	struct request_attributes attributes = {};
	struct handshake handshake = {};
	__u32 isn = s->ack - 1, head = isn >> HASH_BITS, options = 0, epoch = head >> 5;
	struct syn_key *key = bpf_map_lookup_elem(&syn_keys, &epoch);

	if (!key || !key->valid)
		return 0;
	if (s->timestamp)
		options = 1 << OPTION_BITS | (s->tsecr >> 16 & ((1 << OPTION_BITS) - 1));
	if ((isn ^ cookie_hash(key, &s->connection, head << 10 | options, s->seq - 1)) & ((1 << HASH_BITS) - 1))
		return 0;
	attributes.mss = mss_of(head & 7);
	if (skb->protocol == bpf_htons(ETH_P_IPV6) && attributes.mss < MIN_MSS_IPV6)
		attributes.mss = MIN_MSS_IPV6;
	if (s->timestamp) {
		handshake.isn = isn;
		handshake.ts = ((s->tsecr >> 16) + 1) << 10;
		attributes.tstamp_ok = 1;
		attributes.rcv_tsval = s->tsval;
		attributes.rcv_tsecr = handshake.ts;
		attributes.sack_ok = options & 1;
		attributes.snd_wscale = options >> 1 & NO_WINDOW_SCALE;
		if (attributes.snd_wscale != NO_WINDOW_SCALE) {
			attributes.wscale_ok = 1;
			attributes.rcv_wscale = OFFERED_WINDOW_SCALE;
		} else {
			attributes.snd_wscale = 0;
		}
	}
	if (assign(skb, &s->connection, &attributes)) {
		count(SYN_COOKIE_REFUSED);
		return 0;
	}
	if (s->timestamp)
		bpf_map_update_elem(&handshakes, &s->connection, &handshake, BPF_ANY);
	count(SYN_COOKIE_ACCEPTED);
	return 1;
}
