/* SPDX-License-Identifier: Apache-2.0 */
/* Sends lsquic's packets, each from the source address that carries its signals. */
#ifndef SEND_H
#define SEND_H

#include <stdbool.h>
#include <stdint.h>

#include <lsquic.h>

#include <frontage/quic.h>

#define OUTLET_BATCH 256

/* The socket that sends packets. It is also lsquic's peer context. */
struct outlet {
	int descriptor;
	int family;
	in_port_t port; /* in network byte order */
	struct fq *signals;
	void *service;
	uint64_t batch;
	bool is_blocked;
};

/* An implementation of lsquic_packets_out_f. */
int outlet_send(void *context, const struct lsquic_out_spec *packets, unsigned count);

#endif
