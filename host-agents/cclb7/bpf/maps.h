/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The agent's state, which src/abi.rs mirrors. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* A connection as the server's interface sees it. IPv4 addresses are in their IPv6-mapped form, so that a socket's
 * view and a packet's agree also for IPv4 on a dual-stack socket. Addresses in network order, ports in host order. */
struct connection {
	__u32 local[4];
	__u32 remote[4];
	__u16 local_port;
	__u16 remote_port;
};

struct config {
	__u64 netns_cookie; /* the cgroup programs see the sockets of all network namespaces, and handle this one's */
	__u64 look_ahead;   /* bytes */
	__u64 unit_bytes;   /* bytes that the assumed bandwidth carries in a unit of RPT (8 us) */
	__u32 ifindex;      /* for the agent: the interface to which it is attached, */
	__u32 build;        /* and the version of the programs */
	__u32 is_ethernet;  /* 1 if the packets of the interface have an Ethernet header, 0 if they begin with IP */
	__u32 padding;
};

/* One per listening port, hence per SID. */
struct server {
	__u64 n_af;
	__u64 n_ff;
};

/* A SYN-ACK that was sent. The entry stays as the mark of a connection that began with cookies. So packets that the
 * kernel sends for it without a full socket (TIME_WAIT) do not fall back to a raw timestamp, which the client's
 * PAWS check might reject as old. */
struct handshake {
	__u64 sent_ns; /* 0: the switch sent it, or the connection has ended */
	__u32 isn;
	__u32 ts;
};

#define RING 64          /* power of two */
#define RETRANSMITTED 16 /* power of two */
#define ENDS 8           /* power of two */

struct retransmission {
	__u32 begin; /* sequence numbers */
	__u32 end;
	__u32 ts;
};

struct flow {
	/* Offsets count the bytes of the stream from `base`, the sequence number of the first. */
	__u64 acked;
	__u64 sent;
	/* Responses. `ends` are the offsets (upper 48 bits) at which that many (lower 16 bits) finish. */
	__u64 expected;     /* offset at which all reported responses end */
	__u64 sized_end;    /* offset at which the last response of exact size ends */
	__u64 unknown_from; /* offset at which the first open response of unknown length began */
	__u64 ends[ENDS];
	__u32 next_end;
	__u32 open;         /* responses begun whose end is not yet known */
	__u32 open_unknown; /* open responses of unknown length */
	__u32 closed;
	__u64 contribution; /* of this flow to its server: N_AF << 32 | N_FF */
	/* Timestamps: the first segment sent in each tick, as sequence number << 32 | TSval. */
	__u64 ring[RING];
	struct retransmission retransmissions[RETRANSMITTED];
	__u32 next_sent;
	__u32 next_retransmission;
	__u32 retransmissions_lost; /* sequence number below which `retransmissions` is incomplete */
	__u32 clock_offset;         /* TSval - monotonic clock, in ms */
	__u32 rtt_min;              /* ms */
	__u32 gap;                  /* ms between entries of `ring` */
	__u32 last_echo;            /* TSecr last restored */
	__u32 base;
	__u16 port;
	__u16 cookies; /* timestamps were negotiated, and carry cookies from the SYN-ACK on */
};

/* The outcomes for a packet; names in src/abi.rs. */
enum reason {
	COOKIE_WRITTEN,
	COOKIE_SYN_ACK,
	EGRESS_NO_TIMESTAMP,
	EGRESS_UNKNOWN_CONNECTION,
	ECHO_RESTORED,
	ECHO_ZEROED,
	INGRESS_NO_TIMESTAMP,
	INGRESS_UNKNOWN_CONNECTION,
	INGRESS_REFUSED,
	FRAGMENT,
	MALFORMED,
	FLOW_TABLE_FULL,
	SYN_COOKIE_ACCEPTED,
	SYN_COOKIE_REFUSED,
	REASONS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u16);
	__type(value, struct server);
} servers SEC(".maps");

/* Not LRU: evicting a flow in the middle of a response would lose its part of N_AF, and send raw timestamps to a
 * client that has seen cookies. An entry lives exactly as long as its socket. Handshakes, which a SYN flood can
 * create, have a map of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct connection);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct connection);
	__type(value, struct handshake);
} handshakes SEC(".maps");

/* The keys of SYN cookies (syncookie.h), by epoch. */
struct syn_key {
	__u32 k0;
	__u32 k1;
	__u32 valid;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct syn_key);
} syn_keys SEC(".maps");

/* A flow of zeros: a new one is too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} blank SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, __u32);
	__type(value, __u64);
} packets SEC(".maps");

static __always_inline void count(enum reason reason)
{
	__u32 key = reason;
	__u64 *n = bpf_map_lookup_elem(&packets, &key);

	if (n)
		*n += 1;
}

static __always_inline struct config *configuration(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}
