// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Takes the place of the edge switch on a test client's ingress: dynamic form -> static form with a fixed code. It needs
 * no key, because no test here sends a packet through a second switch.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "../bpf/packet.h"

#define STATIC_CODE 0x5a5a

SEC("classifier")
int mask(struct __sk_buff *skb)
{
	struct segment s = {};
	__u32 masked;
	__u64 difference;
	__u8 byte;

	if (parse_segment(skb, &s, 0, 0) != TCP || !(s.offset_byte & CK))
		return TC_ACT_UNSPEC;
	find_timestamp(skb, &s);
	masked = (s.tsval & 0xffff0000) | STATIC_CODE;
	if (!s.timestamp || rewrite(skb, &s, s.timestamp, s.tsval, masked, 0))
		return TC_ACT_SHOT;
	byte = s.offset_byte & ~CK;
	difference = (__u16)~bpf_htons(CK << 8);
	if (bpf_skb_store_bytes(skb, s.tcp + OFFSET_AT, &byte, 1, 0) ||
	    bpf_l4_csum_replace(skb, s.tcp + CHECKSUM_AT, 0, difference, 0))
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
