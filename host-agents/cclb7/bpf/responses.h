/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Responses of a flow, and their contribution to the server's N_AF and N_FF (CloudCookie, section IV-A).
 *
 * A flow has two writers and no lock: the server's reports, and the packets that leave, which not every device sends
 * under the socket's lock. Each writer stores its input, passes a full barrier, and then updates the flow's
 * contribution. It reads all inputs again after the exchange, so the last writer has seen every input, and the
 * counters are exact.
 */
#pragma once

#include "maps.h"

#define END_COUNT_BITS 16

static __always_inline __u64 remaining(const struct flow *flow)
{
	__u64 sent = flow->sent;
	__u64 left = flow->expected > sent ? flow->expected - sent : 0;

	/* A response of unknown length counts as having as much left as was sent: it starts with a high priority,
	 * which falls as the response grows. */
	if (flow->open_unknown && sent > flow->unknown_from && sent - flow->unknown_from > left)
		left = sent - flow->unknown_from;
	return left;
}

static __always_inline __u64 contribution(const struct flow *flow, __u64 look_ahead)
{
	__u64 sent = flow->sent;
	__u32 n_af = flow->open;
	__u32 n_ff = remaining(flow) > look_ahead ? n_af : 0;

	if (flow->closed)
		return 0;
	for (int i = 0; i < ENDS; i++) {
		__u64 end = flow->ends[i] >> END_COUNT_BITS;
		__u32 responses = flow->ends[i] & ((1 << END_COUNT_BITS) - 1);

		if (end > sent)
			n_af += responses;
		if (end > sent + look_ahead)
			n_ff += responses;
	}
	return (__u64)n_af << 32 | n_ff;
}

static __always_inline void settle(struct flow *flow, struct server *server, __u64 look_ahead)
{
	for (int i = 0; i < 4; i++) {
		__u64 now = contribution(flow, look_ahead);
		__u64 before;

		if (now == *(volatile __u64 *)&flow->contribution)
			return;
		before = __sync_lock_test_and_set(&flow->contribution, now);
		__sync_fetch_and_add(&server->n_af, (now >> 32) - (before >> 32));
		__sync_fetch_and_add(&server->n_ff, (now & 0xffffffff) - (before & 0xffffffff));
	}
}

/* Record that a response ends at offset `end`. If all entries are in use, merge it with the latest. */
static __always_inline void push_end(struct flow *flow, __u64 end)
{
	__u32 next = flow->next_end;
	__u64 latest = flow->ends[(next - 1) & (ENDS - 1)];

	if (end <= flow->sent)
		return;
	if (flow->ends[next & (ENDS - 1)] >> END_COUNT_BITS > flow->sent) {
		__u64 latest_end = latest >> END_COUNT_BITS;

		if (end < latest_end)
			end = latest_end;
		flow->ends[(next - 1) & (ENDS - 1)] =
			end << END_COUNT_BITS | ((latest + 1) & ((1 << END_COUNT_BITS) - 1));
		return;
	}
	flow->ends[next & (ENDS - 1)] = end << END_COUNT_BITS | 1;
	flow->next_end = next + 1;
}

/* `written`: the offset up to which the server has written to the socket. */
static __always_inline void begin(struct flow *flow, __u64 written, __u64 bytes)
{
	flow->expected = (flow->expected > written ? flow->expected : written) + bytes;
}

static __always_inline void end(struct flow *flow, __u64 written, __u64 unneeded)
{
	__u64 expected = flow->expected > unneeded ? flow->expected - unneeded : 0;
	__u64 least = written > flow->sized_end ? written : flow->sized_end;

	if (!flow->open)
		return;
	push_end(flow, written);
	flow->open -= 1;
	flow->expected = flow->open && expected > least ? expected : least;
}
