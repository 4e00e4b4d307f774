// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * CCLB7's signal collector and feeder (CloudCookie, section IV-A) for TCP, with an unmodified kernel and server.
 *
 *   tc egress    counts sent bytes; timestamp -> cookie in TSval; records when segments were sent.
 *   tc ingress   cookie in TSecr -> the kernel's own timestamp; packets of unknown connections -> back to the switch.
 *   setsockopt   the server's reports of its responses' sizes.
 *   sockops      begin and end of each connection.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "../include/frontage/cc_message.h"
#include "cookie.h"
#include "maps.h"
#include "packet.h"
#include "responses.h"
#include "second_hop.h"
#include "syncookie.h"
#include "timestamps.h"

#define AF_INET 2
#define PAGE 4096
#define RTT_UNKNOWN 1000 /* ms */

/* The one field of the kernel's socket that no helper returns; its offset is relocated when the program is loaded. */
struct tcp_sock {
	__u32 write_seq;
} __attribute__((preserve_access_index));

/* Leave the packet to the next filter. */
#define PASS TC_ACT_UNSPEC

static __always_inline void feed(struct __sk_buff *skb, const struct segment *s, __u64 rpt, const struct server *server,
				 enum reason reason)
{
	__u32 cookie = dynamic_cookie(s->tsval, rpt, server);

	count(rewrite(skb, s, s->timestamp, s->tsval, cookie, 1) ? MALFORMED : reason);
}

static __always_inline void record(struct flow *flow, const struct segment *s)
{
	__u32 length = s->payload + (s->flags & TCP_FIN ? 1 : 0);
	__s32 fresh = distance(flow->base + (__u32)flow->sent, s->seq + length);

	if (fresh >= (__s32)length)
		record_sent(flow, s->seq, s->tsval);
	else if (length)
		record_retransmission(flow, s->seq, s->seq + length, s->tsval);
	if (fresh > 0)
		__sync_fetch_and_add(&flow->sent, fresh);
}

static __always_inline void begin_cookies(struct flow *flow, const struct handshake *handshake)
{
	flow->cookies = 1;
	flow->last_echo = handshake->ts;
	/* If the switch answered, the clock of the connection starts now. */
	flow->clock_offset = handshake->ts - (handshake->sent_ns ? (__u32)(handshake->sent_ns / NS_PER_MS) : now_ms());
}

SEC("classifier")
int cclb7_egress(struct __sk_buff *skb)
{
	struct config *config = configuration();
	struct segment s = {};
	struct server *server;
	struct flow *flow;
	__u64 rpt = 0;
	int parsed;

	if (!config)
		return PASS;
	parsed = parse_segment(skb, &s, config->is_ethernet, 1);
	if (parsed == BAD)
		count(MALFORMED);
	if (parsed != TCP)
		return PASS;
	server = bpf_map_lookup_elem(&servers, &s.connection.local_port);
	if (!server)
		return PASS;
	find_timestamp(skb, &s);
	flow = bpf_map_lookup_elem(&flows, &s.connection);

	if ((s.flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && s.timestamp) {
		struct handshake handshake = { .sent_ns = bpf_ktime_get_ns(), .isn = s.seq, .ts = s.tsval };

		bpf_map_update_elem(&handshakes, &s.connection, &handshake, BPF_ANY);
		/* With TCP Fast Open the socket exists before its SYN-ACK. */
		if (flow)
			begin_cookies(flow, &handshake);
		feed(skb, &s, 0, server, COOKIE_SYN_ACK);
		return PASS;
	}
	if (flow) {
		/* RPT includes the bytes of this segment; N_AF and N_FF exclude its response if it is the last
		 * segment. */
		if (config->unit_bytes)
			rpt = remaining(flow) / config->unit_bytes;
		record(flow, &s);
		settle(flow, server, config->look_ahead);
	}
	if (!s.timestamp)
		count(EGRESS_NO_TIMESTAMP);
	else if (flow ? flow->cookies : !!bpf_map_lookup_elem(&handshakes, &s.connection))
		feed(skb, &s, rpt, server, COOKIE_WRITTEN);
	else
		count(EGRESS_UNKNOWN_CONNECTION);
	return PASS;
}

/* Advance `acked`, and return its previous sequence number. */
static __always_inline __u32 acknowledge(struct flow *flow, __u32 ack)
{
	__u64 acked = flow->acked;
	__u32 previous = flow->base + (__u32)acked;
	__u32 fresh = ack - previous;

	if (fresh && fresh <= flow->sent - acked)
		__sync_val_compare_and_swap(&flow->acked, acked, acked + fresh);
	return previous;
}

/* Complete the handshake of a segment without a socket, unless the kernel sent the SYN-ACK. */
static __always_inline void try_complete(struct __sk_buff *skb, const struct segment *s)
{
	struct handshake *handshake;

	if (s->flags & (TCP_SYN | TCP_RST))
		return;
	handshake = bpf_map_lookup_elem(&handshakes, &s->connection);
	if (!handshake || !handshake->sent_ns || s->ack != handshake->isn + 1)
		complete_handshake(skb, s);
}

SEC("classifier")
int cclb7_ingress(struct __sk_buff *skb)
{
	struct config *config = configuration();
	struct segment s = {};
	struct server *server;
	struct flow *flow;
	__u32 echo = 0, previous = 0;
	int parsed;

	if (!config)
		return PASS;
	parsed = parse_segment(skb, &s, config->is_ethernet, 0);
	if (parsed == BAD)
		count(MALFORMED);
	if (parsed != TCP)
		return PASS;
	server = bpf_map_lookup_elem(&servers, &s.connection.local_port);
	if (!server)
		return PASS;
	if (s.offset_byte & SECOND_HOP && !(s.flags & TCP_SYN) && !has_socket(skb, &s))
		return refuse(skb, &s, config->is_ethernet);
	if (!(s.flags & TCP_ACK))
		return PASS;
	find_timestamp(skb, &s);
	flow = bpf_map_lookup_elem(&flows, &s.connection);
	if (flow)
		previous = acknowledge(flow, s.ack);
	else
		try_complete(skb, &s);
	if (!s.timestamp) {
		count(INGRESS_NO_TIMESTAMP);
		return PASS;
	}
	if (flow && flow->cookies) {
		echo = restore_echo(flow, previous, s.ack);
	} else {
		struct handshake *handshake = bpf_map_lookup_elem(&handshakes, &s.connection);

		if (!handshake) {
			count(INGRESS_UNKNOWN_CONNECTION);
			return PASS;
		}
		/* Exactly: with SYN cookies the kernel reads the connection's options from it. The time of an answer of
		 * the switch is unknown. */
		if (s.ack == handshake->isn + 1 && handshake->sent_ns)
			echo = handshake->ts;
	}
	if (s.tsecr == echo)
		return PASS;
	if (rewrite(skb, &s, s.timestamp + 4, s.tsecr, echo, 0))
		count(MALFORMED);
	else
		count(echo ? ECHO_RESTORED : ECHO_ZEROED);
	return PASS;
}

/* The addresses of a socket, whose fields have another name in each kind of program. All are read before the family is
 * checked: the verifier requires every access at a constant offset, and the compiler would merge the branches. */
#define SOCKET_CONNECTION(c, socket, local_v4, local_v6, remote_v4, remote_v6)                                         \
	do {                                                                                                           \
		__u32 local4 = (socket)->local_v4, remote4 = (socket)->remote_v4;                                      \
		barrier_var(local4);                                                                                   \
		barrier_var(remote4);                                                                                  \
		for (int i = 0; i < 4; i++) {                                                                          \
			(c)->local[i] = (socket)->local_v6[i];                                                         \
			(c)->remote[i] = (socket)->remote_v6[i];                                                       \
		}                                                                                                      \
		if ((socket)->family == AF_INET) {                                                                     \
			mapped((c)->local, local4);                                                                    \
			mapped((c)->remote, remote4);                                                                  \
		}                                                                                                      \
	} while (0)

/* This socket type hides write_seq, so it is read by address; a copy of the pointer is a plain number to the
 * verifier. */
static __always_inline __u32 write_sequence(struct bpf_sock *sk)
{
	struct bpf_sock *volatile pointer = sk;
	__u64 address = 0;
	__u32 seq = 0;

	bpf_probe_read_kernel(&address, sizeof(address), (const void *)&pointer);
	bpf_probe_read_kernel(&seq, sizeof(seq),
			      (const void *)(address + bpf_core_field_offset(struct tcp_sock, write_seq)));
	return seq;
}

static __always_inline void report(struct flow *flow, const struct cc_message *message, __u64 written)
{
	__u64 bytes = message->bytes;

	if (bytes >> 47)
		bytes = 1ULL << 47;
	switch (message->operation) {
	case CC_RESPONSE:
		begin(flow, written, bytes);
		flow->sized_end = flow->expected;
		push_end(flow, flow->expected);
		break;
	case CC_BEGIN:
		begin(flow, written, bytes);
		flow->open += 1;
		break;
	case CC_BEGIN_UNKNOWN:
		if (!flow->open_unknown)
			flow->unknown_from = written;
		flow->open_unknown += 1;
		flow->open += 1;
		break;
	case CC_END_UNKNOWN:
		if (flow->open_unknown)
			flow->open_unknown -= 1;
		end(flow, written, 0);
		break;
	case CC_END:
		end(flow, written, bytes);
		break;
	}
}

SEC("cgroup/setsockopt")
int cclb7_report(struct bpf_sockopt *ctx)
{
	struct config *config = configuration();
	struct bpf_sock *sk = ctx->sk;
	struct cc_message *message = ctx->optval;
	struct connection c = {};
	struct server *server;
	struct flow *flow;

	if (ctx->level != CC_LEVEL || ctx->optname != CC_OPTION || !sk || !config ||
	    bpf_get_netns_cookie(ctx) != config->netns_cookie) {
		/* The kernel passes at most a page: longer options must be left to it explicitly. */
		if (ctx->optlen > PAGE)
			ctx->optlen = 0;
		return 1;
	}
	if ((void *)(message + 1) > ctx->optval_end)
		return 1;
	SOCKET_CONNECTION(&c, sk, src_ip4, src_ip6, dst_ip4, dst_ip6);
	c.local_port = sk->src_port;
	c.remote_port = bpf_ntohs(sk->dst_port);
	server = bpf_map_lookup_elem(&servers, &c.local_port);
	if (!server)
		return 1;
	flow = bpf_map_lookup_elem(&flows, &c);
	if (flow) {
		__u64 acked = flow->acked;

		report(flow, message, acked + (__u32)(write_sequence(sk) - flow->base - (__u32)acked));
		__sync_fetch_and_add(&flow->contribution, 0); /* a full barrier */
		settle(flow, server, config->look_ahead);
	}
	ctx->optlen = -1; /* handled: the kernel ignores the call */
	return 1;
}

static __always_inline void closed(const struct connection *c, struct server *server)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, c);
	struct handshake mark = {};

	if (!flow)
		return;
	flow->closed = 1;
	settle(flow, server, 0);
	if (flow->cookies)
		bpf_map_update_elem(&handshakes, c, &mark, BPF_ANY);
	bpf_map_delete_elem(&flows, c);
}

static __always_inline void established(struct bpf_sock_ops *ctx, const struct connection *c)
{
	struct handshake *handshake = bpf_map_lookup_elem(&handshakes, c);
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct flow *flow = bpf_map_lookup_elem(&blank, &zero);

	if (!flow)
		return;
	if (bpf_map_update_elem(&flows, c, flow, BPF_NOEXIST)) {
		count(FLOW_TABLE_FULL);
		return;
	}
	flow = bpf_map_lookup_elem(&flows, c);
	if (!flow)
		return;
	flow->base = ctx->snd_una;
	flow->retransmissions_lost = flow->base;
	flow->port = c->local_port;
	flow->rtt_min = RTT_UNKNOWN;
	flow->gap = 1;
	if (handshake && handshake->isn + 1 == flow->base) {
		begin_cookies(flow, handshake);
		if (handshake->sent_ns) {
			__u32 gap;

			flow->rtt_min = (now - handshake->sent_ns) / NS_PER_MS;
			gap = flow->rtt_min / (RING / 2);
			if (gap > 1)
				flow->gap = gap < GAP_MAX ? gap : GAP_MAX;
		}
	}
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
}

SEC("sockops")
int cclb7_sockops(struct bpf_sock_ops *ctx)
{
	struct config *config = configuration();
	struct connection c = {};
	struct server *server;

	if (ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB &&
	    (ctx->op != BPF_SOCK_OPS_STATE_CB || ctx->args[1] != BPF_TCP_CLOSE))
		return 1;
	if (!config || bpf_get_netns_cookie(ctx) != config->netns_cookie)
		return 1;
	SOCKET_CONNECTION(&c, ctx, local_ip4, local_ip6, remote_ip4, remote_ip6);
	c.local_port = ctx->local_port;
	c.remote_port = bpf_ntohl(ctx->remote_port);
	server = bpf_map_lookup_elem(&servers, &c.local_port);
	if (!server)
		return 1;
	if (ctx->op == BPF_SOCK_OPS_STATE_CB)
		closed(&c, server);
	else
		established(ctx, &c);
	return 1;
}

char _license[] SEC("license") = "GPL";
