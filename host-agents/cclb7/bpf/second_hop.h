/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The second hop (docs/second-hop.md): a server sends marked packets of connections that it does not know back to the switch. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "maps.h"
#include "packet.h"

#define SECOND_HOP 0x04 /* in byte 12 of the TCP header: another server may know the connection */

/* Return whether the kernel has a socket for the segment's connection, in any state except LISTEN. */
static __always_inline int has_socket(struct __sk_buff *skb, const struct segment *s)
{
	struct bpf_sock_tuple tuple = {};
	struct bpf_sock *sk;
	__u32 size;
	int found;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		size = sizeof(tuple.ipv4);
		tuple.ipv4.saddr = s->connection.remote[3];
		tuple.ipv4.daddr = s->connection.local[3];
		tuple.ipv4.sport = bpf_htons(s->connection.remote_port);
		tuple.ipv4.dport = bpf_htons(s->connection.local_port);
	} else {
		size = sizeof(tuple.ipv6);
		__builtin_memcpy(tuple.ipv6.saddr, s->connection.remote, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, s->connection.local, sizeof(tuple.ipv6.daddr));
		tuple.ipv6.sport = bpf_htons(s->connection.remote_port);
		tuple.ipv6.dport = bpf_htons(s->connection.local_port);
	}
	sk = bpf_skc_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return 0;
	found = sk->state != BPF_TCP_LISTEN;
	bpf_sk_release(sk);
	return found;
}

/* Exchange two fields of `size` bytes, of which the first begins at `offset` and the second one follows. */
static __always_inline int exchange(struct __sk_buff *skb, __u32 offset, __u32 size)
{
	__u8 first[16], second[16];

	return bpf_skb_load_bytes(skb, offset, first, size) || bpf_skb_load_bytes(skb, offset + size, second, size) ||
	       bpf_skb_store_bytes(skb, offset, second, size, 0) ||
	       bpf_skb_store_bytes(skb, offset + size, first, size, 0);
}

/* Send the packet back to the switch. No checksum changes, because it is a sum of the exchanged words. */
static __always_inline int refuse(struct __sk_buff *skb, const struct segment *s, int is_ethernet)
{
	int is_ipv4 = skb->protocol == bpf_htons(ETH_P_IP);
	int failed;

	failed = exchange(skb, s->tcp, 2) || (is_ethernet && exchange(skb, 0, ETH_ALEN));
	if (is_ipv4)
		failed = failed || exchange(skb, s->ip + __builtin_offsetof(struct iphdr, saddr), 4);
	else
		failed = failed || exchange(skb, s->ip + __builtin_offsetof(struct ipv6hdr, saddr), 16);
	if (failed) {
		count(MALFORMED);
		return TC_ACT_SHOT;
	}
	count(INGRESS_REFUSED);
	return bpf_redirect(skb->ifindex, 0);
}
