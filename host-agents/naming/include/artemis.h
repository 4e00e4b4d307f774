/* Names without lookups: docs/naming.md. Link with -lartemis. */
#ifndef ARTEMIS_H
#define ARTEMIS_H

#include <netdb.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* getaddrinfo(3) for Artemis names: same arguments, results and errors, and no network. The result is freed by freeaddrinfo(3).
 *
 * `node` belongs to the instances that the environment names (ARTEMIS, ARTEMIS_CONF); of each the result has the Service Address.
 * Numeric hosts are what they are; any other name is EAI_NONAME. If the cache knows a unicast address of the service, it is the first
 * of the result, for datagrams (SOCK_DGRAM); the Service Address comes behind it, for when that one refuses or does not answer.
 * EAI_SYSTEM with EINVAL: the environment's settings are wrong, as the standard error has said. */
int getaddrinfosid(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);

/* Remembers for `service_ttl` seconds, a day at most, that `name` at `port` (in host order) is at `unicast` (AF_INET, AF_INET6), as a
 * server says by the transport parameters preferred_address and service_ttl. A service_ttl of 0 forgets. 0, or -1 and errno. */
int artemis_cache(const char *name, uint16_t port, const struct sockaddr *unicast, socklen_t length,
		  uint32_t service_ttl);

/* Forgets it: the server refused (CONNECTION_REFUSED), or did not answer. 0, or -1 and errno. */
int artemis_invalidate(const char *name, uint16_t port);

#ifdef __cplusplus
}
#endif

#endif
