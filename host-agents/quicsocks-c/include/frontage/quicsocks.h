/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QuicSocks for clients in C (docs/quicsocks.md). A QUIC connection starts through a proxy, which resolves the server's name. Then
 * the connection migrates to the direct path. The client brings its own QUIC library; this library sends and receives its packets.
 *
 * 1. fqs_associate(), in advance.
 * 2. fqs_connect(), then fqs_send() and fqs_receive() on FQS_PROXIED for the handshake.
 * 3. If the handshake is confirmed and fqs_direct() returns FQS_REACHABLE, let the QUIC library migrate to FQS_DIRECT.
 * 4. If fqs_direct() returns FQS_IN_USE, the path is direct. Call fqs_release() when the QUIC library has migrated.
 *
 * examples/quicsocks_get.c does this with ngtcp2. Link with -lfrontage_quicsocks_c.
 *
 * Functions do not block, except for fqs_associate(). An association and its connections may be used by one thread at a time. Strings
 * that the caller passes are copied.
 */
#ifndef FRONTAGE_QUICSOCKS_H
#define FRONTAGE_QUICSOCKS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Errors are negative. */
enum fqs_result {
	FQS_OK = 0,
	FQS_AGAIN = -1,   /* nothing to receive, or no room to send: wait for fqs_fd() or fqs_timeout() */
	FQS_INVALID = -2, /* an argument is invalid: the proxy, name or port, or a path that is not available */
	FQS_SYSTEM = -3,  /* a system call failed: errno has the reason */
	FQS_BUSY = -4,    /* the association carries a connection already: release it, or open another association */
	FQS_PROXY_CLOSED = -5,  /* the proxy closed the association: connect without it, or open another one */
	FQS_NOT_ALLOWED = -6,   /* the proxy rejected the credentials, or its rules forbid this destination */
	FQS_NO_ADDRESS = -7,    /* the name has no address that the proxy can reach */
	FQS_REFUSED = -8,       /* no server listens at the port (ICMP) */
	FQS_PROXY_FAILURE = -9, /* the proxy failed: it has no socket left, or its answer is malformed */
};

/* The path of a packet. */
enum fqs_path {
	FQS_PROXIED, /* through the proxy */
	FQS_DIRECT,  /* between client and server */
};

/* The state of the direct path. */
enum fqs_direct_state {
	FQS_RESOLVING,   /* the proxy has not reported the server's address yet */
	FQS_PROBING,     /* a probe is on its way to the server */
	FQS_UNREACHABLE, /* the server answered no probe in 3 s: the connection stays at the proxy */
	FQS_REACHABLE,   /* the server answered a probe: packets may use FQS_DIRECT once the handshake is confirmed */
	FQS_IN_USE,      /* the server has sent a packet on the direct path */
};

/* An association with a proxy. */
struct fqs_association;
/* The datagrams of a QUIC connection. */
struct fqs_connection;

/* Return a description of a result, in English. */
const char *fqs_text(int result);

/*
 * Open an association with the proxy at "HOST:PORT". It carries one connection at a time through the proxy, one after the other.
 * `user` and `password` (RFC 1929, up to 255 bytes each) may be NULL. The caller frees it with fqs_association_free(), before or
 * after its connection.
 *
 * Takes two round trips, and fails after 10 s. Errors: FQS_INVALID, FQS_SYSTEM (the proxy is unreachable), FQS_PROXY_CLOSED,
 * FQS_NOT_ALLOWED, FQS_PROXY_FAILURE.
 */
int fqs_associate(const char *proxy, const char *user, const char *password, struct fqs_association **association);
void fqs_association_free(struct fqs_association *association);

/*
 * Begin a connection to a host name and UDP port. Sends nothing: the first packet does. The caller frees it with
 * fqs_connection_free(), which also releases the proxy's flow.
 *
 * Errors: FQS_INVALID, FQS_BUSY, FQS_SYSTEM, FQS_PROXY_CLOSED.
 */
int fqs_connect(struct fqs_association *association, const char *name, uint16_t port,
		struct fqs_connection **connection);
void fqs_connection_free(struct fqs_connection *connection);

/* Return a file descriptor for poll(2) and epoll(7). It is readable if fqs_receive() has something to do. Never read or close it. */
int fqs_fd(const struct fqs_connection *connection);

/* Return the timeout for poll() in milliseconds, or -1 for none. Call fqs_receive() when it expires, too. */
int fqs_timeout(const struct fqs_connection *connection);

/*
 * Send a QUIC packet. The first must be an Initial of at least 1,200 bytes. A packet that the interface's MTU does not admit counts as
 * lost. To the proxy, a header of 7 bytes and the name precedes each packet. ECN marks are neither sent nor reported.
 *
 * Errors: FQS_AGAIN, FQS_INVALID (FQS_DIRECT before FQS_REACHABLE, FQS_PROXIED after fqs_release()), FQS_SYSTEM, FQS_PROXY_CLOSED,
 * and the proxy's report: FQS_NOT_ALLOWED, FQS_NO_ADDRESS, FQS_REFUSED, FQS_PROXY_FAILURE.
 */
int fqs_send(struct fqs_connection *connection, enum fqs_path path, const void *packet, size_t length);

/*
 * Receive a QUIC packet, and store its path. Return its length. Packets longer than `size` are discarded. Also sends the probes.
 *
 * Errors: those of fqs_send().
 */
ssize_t fqs_receive(struct fqs_connection *connection, void *buffer, size_t size, enum fqs_path *path);

/* Return the state of the direct path. It changes in fqs_receive() only. */
enum fqs_direct_state fqs_direct(const struct fqs_connection *connection);

/*
 * Store the addresses of a path for the QUIC library. `local` differs between the two paths. `server` is the same placeholder on both,
 * because QUIC libraries expect that a server's address does not change. Errors: FQS_INVALID (FQS_DIRECT before FQS_REACHABLE).
 */
int fqs_addresses(const struct fqs_connection *connection, enum fqs_path path, struct sockaddr_storage *local,
		  struct sockaddr_storage *server);

/* Store the server's real address. Errors: FQS_AGAIN while it is unknown. */
int fqs_server(const struct fqs_connection *connection, struct sockaddr_storage *server);

/*
 * Release the proxy's flow. The association is then free for the next connection. Call it when the QUIC library has migrated and the
 * server has answered on the direct path; QUIC repeats packets that are still on their way to the proxy.
 */
void fqs_release(struct fqs_connection *connection);

#ifdef __cplusplus
}
#endif

#endif
