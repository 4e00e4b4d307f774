// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * katran's XDP program, for the kernel's test run, which continues with the packet that the program leaves.
 *
 * After each run, `katran` removes the outer IPv4 header and gives the packet the source port of the next connection.
 * `nothing` does only that, so the difference is katran's own time.
 */
#define PROG_SEC_NAME ".text"
#include "katran/lib/bpf/balancer.bpf.c"

#define OUTER ((int)sizeof(struct iphdr))

static __u32 packets;

static __always_inline int next_packet(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_head(ctx, OUTER))
		return XDP_ABORTED;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	__be16 *source_port = (void *)(ip + 1);
	if ((void *)(source_port + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__builtin_memset(eth, 2, sizeof(*eth));
	eth->h_proto = BE_ETH_P_IP;
	*source_port = bpf_htons(FIRST_PORT + packets++ % CONNECTIONS);
	return XDP_TX;
}

SEC("xdp")
int katran(struct xdp_md *ctx)
{
	int action = balancer_ingress(ctx);
	return action == XDP_TX ? next_packet(ctx) : action;
}

SEC("xdp")
int nothing(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, -OUTER) ? XDP_ABORTED : next_packet(ctx);
}
