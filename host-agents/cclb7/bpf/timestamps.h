/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Reconstruction of the timestamp that the client echoes.
 *
 * The cookie replaced the timestamp, so it is reconstructed by the receiver's rule (RFC 7323, section 4.3): the
 * receiver stores a segment's TSval if the segment begins at or before the last acknowledgment sent. Hence an
 * acknowledgment that advances from P to A echoes the segment with byte P: the first of those that a delayed
 * acknowledgment covers, or the latest retransmission that it can answer.
 */
#pragma once

#include "maps.h"

#define NS_PER_MS 1000000ULL

static __always_inline __s32 distance(__u32 from, __u32 to)
{
	return (__s32)(to - from);
}

static __always_inline __u32 now_ms(void)
{
	return bpf_ktime_get_ns() / NS_PER_MS;
}

#define GAP_MAX 64 /* ms: the ring then spans four seconds */

/* Record a segment that carries `ts`. If one entry per millisecond would forget segments in flight, keep fewer
 * ticks, so that 16 to 64 entries cover the time that a segment is in flight. */
static __always_inline void record_sent(struct flow *flow, __u32 seq, __u32 ts)
{
	__u32 next = flow->next_sent;
	__u32 unacknowledged = flow->base + (__u32)flow->acked;
	__u32 oldest = flow->ring[next & (RING - 1)] >> 32;
	__u32 recent = flow->ring[(next - RING / 4) & (RING - 1)] >> 32;

	if (next && distance(flow->ring[(next - 1) & (RING - 1)], ts) < (__s32)flow->gap)
		return;
	/* A change takes effect in the ring with a delay. */
	if (next && !(next & (RING / 4 - 1))) {
		if (next >= RING && distance(unacknowledged, oldest) > 0 && flow->gap < GAP_MAX)
			flow->gap *= 2;
		else if (distance(unacknowledged, recent) < 0 && flow->gap > 1)
			flow->gap /= 2;
	}
	*(volatile __u64 *)&flow->ring[next & (RING - 1)] = (__u64)seq << 32 | ts;
	flow->next_sent = next + 1;
}

static __always_inline void record_retransmission(struct flow *flow, __u32 begin, __u32 end, __u32 ts)
{
	__u32 next = flow->next_retransmission;
	struct retransmission *latest = &flow->retransmissions[(next - 1) & (RETRANSMITTED - 1)];
	struct retransmission *entry = &flow->retransmissions[next & (RETRANSMITTED - 1)];

	if (next && latest->end == begin && latest->ts == ts) {
		latest->end = end;
		return;
	}
	if (next >= RETRANSMITTED && distance(flow->retransmissions_lost, entry->end) > 0)
		flow->retransmissions_lost = entry->end;
	entry->begin = begin;
	entry->end = end;
	entry->ts = ts;
	flow->next_retransmission = next + 1;
}

/* Return the newest timestamp, not above `limit`, of a first transmission that began at or before `seq`; 0 if
 * forgotten. */
static __always_inline __u32 find_sent(const struct flow *flow, __u32 seq, __u32 limit)
{
	for (__u32 i = 1; i <= RING; i++) {
		__u64 entry = *(volatile __u64 *)&flow->ring[(flow->next_sent - i) & (RING - 1)];

		if (!entry)
			break;
		if (distance(entry >> 32, seq) >= 0 && distance(entry, limit) >= 0)
			return entry;
	}
	return 0;
}

/* Return the timestamp of the segment with `seq`, or 0 if it is unknown. A retransmission younger than the shortest
 * round trip so far may be spurious, or the first on a faster path. Never return the first transmission's time
 * then: the kernel would conclude that its timeout was spurious (RFC 3522) and stop repairing the loss. A
 * retransmission older than the first transmission is from a previous wrap of the sequence numbers. */
static __always_inline __u32 find_segment(struct flow *flow, __u32 seq, __u32 now)
{
	/* With pacing, segments get their timestamp before they leave: allow a second. */
	__u32 first = find_sent(flow, seq, now + 1000);

	for (__u32 i = 1; i <= RETRANSMITTED; i++) {
		const struct retransmission *entry =
			&flow->retransmissions[(flow->next_retransmission - i) & (RETRANSMITTED - 1)];

		if (i > flow->next_retransmission)
			break;
		if (distance(entry->begin, seq) >= 0 && distance(seq, entry->end) > 0 &&
		    (!first || distance(first, entry->ts) >= 0))
			return distance(entry->ts, now - flow->rtt_min) >= 0 ? entry->ts : 0;
	}
	if (distance(seq, flow->retransmissions_lost) > 0)
		return 0;
	flow->retransmissions_lost = seq;
	return first;
}

/* Return the TSecr that a segment would have without cookies, if it acknowledges from `previous` to `ack`. */
static __always_inline __u32 restore_echo(struct flow *flow, __u32 previous, __u32 ack)
{
	__u32 now = now_ms() + flow->clock_offset;
	__u32 echo;

	if (distance(previous, ack) > 0) {
		echo = find_segment(flow, previous, now);
		if (echo) {
			__s32 rtt = distance(echo, now);

			if (rtt >= 0 && (__u32)rtt < flow->rtt_min)
				flow->rtt_min = rtt;
		}
	} else {
		/* No progress: the client has the server's latest pure acknowledgment that can have reached it. */
		echo = find_sent(flow, ack, now - flow->rtt_min);
		if (!echo)
			echo = flow->last_echo;
	}
	if (echo)
		flow->last_echo = echo;
	return echo;
}
