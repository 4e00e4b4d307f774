// SPDX-License-Identifier: Apache-2.0
/* Names without DNS queries (docs/naming.md). Link with -lartemis. */
#ifndef ARTEMIS_H
#define ARTEMIS_H

#include <netdb.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Resolve an Artemis name, without network traffic. Arguments, results and errors are those of getaddrinfo(3); free the result with
 * freeaddrinfo(3).
 *
 * The environment (ARTEMIS, ARTEMIS_CONF) names the instances. The result has a Service Address for each instance to which `node`
 * belongs. Numeric hosts are accepted; other names fail with EAI_NONAME. If the cache has a unicast address of the service, the result
 * begins with it, for datagrams (SOCK_DGRAM) only; if that address refuses or does not answer, use the Service Address, which follows.
 * EAI_SYSTEM with EINVAL: the settings in the environment are invalid; the first call has printed the error to the standard error
 * stream. */
int getaddrinfosid(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);

/* Cache for `service_ttl` seconds, at most a day, that `name` at `port` (in host byte order) has the address `unicast` (AF_INET or
 * AF_INET6). A server announces both in the transport parameters preferred_address and service_ttl. A service_ttl of 0 removes the
 * entry. Return 0, or -1 and errno. */
int artemis_cache(const char *name, uint16_t port, const struct sockaddr *unicast, socklen_t length,
		  uint32_t service_ttl);

/* Remove an entry, because the server refused (CONNECTION_REFUSED) or did not answer. Return 0, or -1 and errno. */
int artemis_invalidate(const char *name, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
