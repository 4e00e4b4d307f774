/* SPDX-License-Identifier: Apache-2.0 */
/* A UDP socket, and the lsquic engines of its connections. */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <lsquic.h>

#include <frontage/quic.h>

struct listener;

/* The common state of all listeners. */
struct service {
	struct fq *signals; /* NULL: none */
	const struct lsquic_stream_if *http;
	const struct lsquic_hset_if *headers;
	void *context; /* the argument of `http` */
	struct ssl_ctx_st *tls;
	bool no_preferred_address;
};

/* Bind to `address`. Return NULL with errno. */
struct listener *listener_open(struct service *service, const struct sockaddr_storage *address);

/* The descriptor to poll, and whether to poll it for POLLOUT, too. */
int listener_descriptor(const struct listener *listener);
bool listener_is_blocked(const struct listener *listener);

/* Pass all received datagrams to the engines. */
void listener_receive(struct listener *listener);

/* Run the engines, and send. */
void listener_process(struct listener *listener);

/* Return the milliseconds until listener_process() must be called, or -1 if it must not. */
int listener_timeout(struct listener *listener);

/* Serve new connections with a new engine, because the preferred address has changed. */
void listener_renew(struct listener *listener);

/* Let connections end, and accept no new ones. */
void listener_end(struct listener *listener);

unsigned listener_connections(const struct listener *listener);

#endif
