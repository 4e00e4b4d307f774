/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a QUIC server in C (docs/quic-servers.md): connection ids that name the server, the static cookie of its
 * preferred_address, and the source address of each packet. The QUIC library must let the server choose these three.
 *
 * Link with -lfrontage_quic_c.
 *
 * Threads: a struct fq may be used by several threads at a time. A connection and its responses may be used by one thread at a time.
 * Strings and structures that the caller passes are copied. No function keeps a pointer to them.
 */
#ifndef FRONTAGE_QUIC_H
#define FRONTAGE_QUIC_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a connection id. The QUIC library must use ids of this length. */
#define FQ_CONNECTION_ID 12

/* The size of a response whose size is unknown. */
#define FQ_UNKNOWN UINT64_MAX

/* A server. */
struct fq;
/* A connection of a server. */
struct fq_connection;
/* A response that is being sent. */
struct fq_response;

struct fq_settings {
	struct in6_addr server_prefix; /* this server's own /64; the lower 64 bits must be zero */
	struct in6_addr
		cookie_prefix; /* the /64 of cookie addresses, to which clients send; the lower 64 bits must be zero */
	const char *keys;      /* path of the key file that `frontage keys` or `frontage follow-keys` writes */
	uint64_t bandwidth; /* assumed bandwidth of a connection in bit/s, above 0; RPT = remaining bytes / bandwidth */
	uint64_t look_ahead; /* a response with more remaining bytes than this counts in N_FF */
	uint16_t sid;        /* id of this server */
	uint16_t sid_v4;     /* its id in connection ids over IPv4; the same as sid if one service has both families */
	uint16_t port;       /* port of the service at cookie addresses, in host byte order */
};

/*
 * Open a server. The caller frees it with fq_close(). Return NULL if a setting or the key file is invalid. `error` then contains a
 * message "PLACE: WHAT IS WRONG", cut off at `size` bytes with its final NUL; it may be NULL if `size` is 0.
 */
struct fq *fq_open(const struct fq_settings *settings, char *error, size_t size);

/* Free a server. Its connections and responses remain valid, and must be freed separately. */
void fq_close(struct fq *server);

/*
 * Reload the key file. Established connections keep their addresses and connection ids, as long as the key that sealed them is
 * one of the two in the file. Return 0, or -1 with a message like fq_open(). The previous keys then remain in use.
 */
int fq_reload(struct fq *server, char *error, size_t size);

/*
 * Write a new connection id of FQ_CONNECTION_ID bytes. `family` is AF_INET or AF_INET6, the family of the client's address. Every
 * call returns a different id.
 */
void fq_connection_id(const struct fq *server, int family, uint8_t *id);

/*
 * Write the preferred address (RFC 9000, section 9.6) for the newest key: cookie prefix and static cookie, with the service's port.
 * It changes with the newest key, so read it after each fq_reload(). Use it for IPv6 clients only.
 */
void fq_preferred_address(const struct fq *server, struct sockaddr_in6 *address);

/* Write the loads of the server: N_AF, the active responses, and N_FF, those with more remaining bytes than the look-ahead. */
void fq_loads(const struct fq *server, uint64_t *n_af, uint64_t *n_ff);

/* Return a new connection. The caller frees it with fq_connection_free(). */
struct fq_connection *fq_connection_new(struct fq *server);
void fq_connection_free(struct fq_connection *connection);

/*
 * Write the source address of a packet, and return 1. `local` is the server's address at which packets of this path arrive, as
 * reported by IPV6_PKTINFO. Return 0 if the packet must leave from `local` itself: over IPv4, and from addresses outside the server's
 * /64. `connection` may be NULL for packets without a connection.
 *
 * `batch` is a number that all packets of one batch share, and that differs from the number of the previous batch. All packets of a
 * batch report the RPT of the response in it. A batch of several responses reports the smallest RPT. A batch without response bytes
 * reports the RPT of the previous batch, or 0 if the connection has no active response.
 */
int fq_source(const struct fq *server, struct fq_connection *connection, uint64_t batch, const struct sockaddr *local,
	      struct in6_addr *source);

/*
 * Begin a response of `size` bytes (with its header, if known), or FQ_UNKNOWN. It counts in N_AF until fq_response_end(), which
 * also frees it.
 */
struct fq_response *fq_response_begin(struct fq_connection *connection, uint64_t size);

/*
 * Record that the next batch carries bytes of the response up to `offset`, counted from its beginning. Call it when the QUIC library
 * accepts the bytes for immediate sending. Offsets that were already recorded are ignored.
 */
void fq_response_sent(struct fq_response *response, uint64_t offset);

/*
 * End and free a response when the QUIC library has accepted its last byte, or when it was aborted. The packets of the next
 * batch report loads without it.
 */
void fq_response_end(struct fq_response *response);

#ifdef __cplusplus
}
#endif

#endif
