/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/3: requests for files, and their responses. */
#ifndef HTTP_H
#define HTTP_H

#include <stdint.h>
#include <stdio.h>

#include <lsquic.h>

#include <frontage/quic.h>

struct response;

struct http {
	struct fq *signals; /* NULL: none */
	int directory;      /* descriptor */
	FILE *access_log;   /* NULL: none */
	uint64_t pace;      /* bytes per second of each response; 0: unlimited */
	struct response *paced;
	double pace_at; /* when paced responses continue; with each event, each acknowledgment would cause a small packet */
	uint64_t requests;
	uint64_t body_bytes;
	uint64_t active;
};

extern const struct lsquic_stream_if http_streams;
extern const struct lsquic_hset_if http_headers;

/* Return the signals of a connection. `connection` may be NULL. */
struct fq_connection *http_signals(lsquic_conn_ctx_t *connection);

/* Let paced responses continue if it is time. Return the milliseconds until the next call, or -1 without paced responses. */
int http_pace(struct http *http);

#endif
