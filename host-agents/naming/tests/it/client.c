// SPDX-License-Identifier: Apache-2.0
/* Called by c.rs, with the instances in its environment: `client vectors NAME...` prints Service Addresses, `client checks` and `client wrong` end with 0 if all is as it should be. */
#define _GNU_SOURCE /* EAI_ADDRFAMILY */
#include "artemis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

/* "address port socktype, ..." of the result, or the error's number. */
static const char *look_up(const char *node, const char *service, int family, int socktype, int flags)
{
	static char text[1024];
	struct addrinfo hints = { .ai_flags = flags, .ai_family = family, .ai_socktype = socktype };
	struct addrinfo *list = NULL;
	int code = getaddrinfosid(node, service, &hints, &list);
	if (code != 0) {
		snprintf(text, sizeof text, "%d", code);
		return text;
	}
	text[0] = '\0';
	for (struct addrinfo *one = list; one != NULL; one = one->ai_next) {
		char host[64], port[8];
		CHECK(one->ai_family == one->ai_addr->sa_family);
		CHECK(getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, port, sizeof port,
				  NI_NUMERICHOST | NI_NUMERICSERV) == 0);
		size_t length = strlen(text);
		snprintf(text + length, sizeof text - length, "%s%s %s %d", length ? ", " : "", host, port,
			 one->ai_socktype);
		if (one->ai_canonname != NULL) {
			CHECK(one == list);
			length = strlen(text);
			snprintf(text + length, sizeof text - length, " (%s)", one->ai_canonname);
		}
	}
	freeaddrinfo(list);
	return text;
}

#define IS(expected, ...)                                                                                              \
	do {                                                                                                           \
		const char *found = look_up(__VA_ARGS__);                                                              \
		if (strcmp(found, expected) != 0) {                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, found);                                     \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static void error_is(int code, const char *node, const char *service, int family, int socktype, int flags)
{
	char expected[16];
	snprintf(expected, sizeof expected, "%d", code);
	IS(expected, node, service, family, socktype, flags);
}

static void checks(void)
{
	struct addrinfo *list = NULL;
	CHECK(SOCK_STREAM == 1 && SOCK_DGRAM == 2);
	/* Families, services, kinds of sockets. */
	IS("2001:db8:a:: 443 2", "V6.Example.", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	IS("198.51.100.0 443 1", "both.example", "https", AF_INET, SOCK_STREAM, 0);
	IS("2001:db8:a:: 0 1", "both.example", NULL, AF_INET6, SOCK_STREAM, 0);
	CHECK(strstr(look_up("both.example", "1", AF_UNSPEC, SOCK_DGRAM, 0), "198.51.100.0 1 2") != NULL);
	CHECK(strstr(look_up("both.example", "1", AF_UNSPEC, SOCK_DGRAM, 0), "2001:db8:a:: 1 2") != NULL);
	IS("2001:db8:a:: 7 1, 2001:db8:a:: 7 2, 2001:db8:a:: 7 3", "v6.example", "7", AF_UNSPEC, 0, 0);
	/* Flags. */
	IS("198.51.100.0 443 2 (v4.example)", "V4.example", "443", AF_UNSPEC, SOCK_DGRAM, AI_CANONNAME);
	IS("::ffff:198.51.100.0 443 2", "v4.example", "443", AF_INET6, SOCK_DGRAM, AI_V4MAPPED);
	IS("2001:db8:a:: 443 2", "both.example", "443", AF_INET6, SOCK_DGRAM, AI_V4MAPPED);
	CHECK(strstr(look_up("both.example", "1", AF_INET6, SOCK_DGRAM, AI_V4MAPPED | AI_ALL),
		     "::ffff:198.51.100.0 1 2") != NULL);
	IS("192.0.2.1 443 2", "192.0.2.1", "443", AF_UNSPEC, SOCK_DGRAM, AI_NUMERICHOST);
	IS("127.0.0.1 443 2", "127.1", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	IS("0.0.0.0 443 2", NULL, "443", AF_INET, SOCK_DGRAM, AI_PASSIVE);
	/* Errors. */
	error_is(EAI_NONAME, "others.example", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	error_is(EAI_NONAME, "both.example", "443", AF_UNSPEC, SOCK_DGRAM, AI_NUMERICHOST);
	error_is(EAI_NONAME, "both.example", "https", AF_UNSPEC, SOCK_DGRAM, AI_NUMERICSERV);
	error_is(EAI_NONAME, "\xff", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	error_is(EAI_NONAME, "", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	error_is(EAI_NONAME, NULL, NULL, AF_UNSPEC, SOCK_DGRAM, 0);
	error_is(EAI_SERVICE, "both.example", "no such service", AF_UNSPEC, SOCK_DGRAM, 0);
	error_is(EAI_ADDRFAMILY, "v4.example", "443", AF_INET6, SOCK_DGRAM, 0);
	error_is(EAI_FAMILY, "v4.example", "443", 12345, SOCK_DGRAM, 0);
	error_is(EAI_SOCKTYPE, "v4.example", "443", AF_UNSPEC, 12345, 0);
	error_is(EAI_BADFLAGS, "v4.example", "443", AF_UNSPEC, SOCK_DGRAM, 1 << 30);
	CHECK(getaddrinfosid("no name\n", "443", NULL, &list) == EAI_NONAME && list == NULL);
	/* The cache. */
	struct sockaddr_in unicast = { .sin_family = AF_INET, .sin_port = htons(8443) };
	CHECK(inet_pton(AF_INET, "192.0.2.7", &unicast.sin_addr) == 1);
	const struct sockaddr *address = (const struct sockaddr *)&unicast;
	CHECK(artemis_cache("V4.Example", 443, address, sizeof unicast, 60) == 0);
	IS("192.0.2.7 8443 2, 198.51.100.0 443 2", "v4.example", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	IS("192.0.2.7 8443 2 (v4.example), 198.51.100.0 443 2", "v4.example", "443", AF_UNSPEC, SOCK_DGRAM,
	   AI_CANONNAME);
	IS("198.51.100.0 444 2", "v4.example", "444", AF_UNSPEC, SOCK_DGRAM, 0);
	IS("198.51.100.0 443 1", "v4.example", "443", AF_UNSPEC, SOCK_STREAM, 0);
	CHECK(artemis_invalidate("v4.example.", 443) == 0);
	IS("198.51.100.0 443 2", "v4.example", "443", AF_UNSPEC, SOCK_DGRAM, 0);
	errno = 0;
	CHECK(artemis_cache("v4.example", 443, address, 3, 60) == -1 && errno == EINVAL);
	CHECK(artemis_cache(NULL, 443, address, sizeof unicast, 60) == -1 && artemis_invalidate("", 443) == -1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "checks") == 0) {
		checks();
	} else if (argc > 1 && strcmp(argv[1], "wrong") == 0) {
		struct addrinfo *list = NULL;
		CHECK(getaddrinfosid("a", "443", NULL, &list) == EAI_SYSTEM && errno == EINVAL);
		CHECK(getaddrinfosid("a", "443", NULL, &list) == EAI_SYSTEM && list == NULL);
	} else if (argc > 1 && strcmp(argv[1], "vectors") == 0) {
		for (int i = 2; i < argc; i++) {
			char *line = strdup(look_up(argv[i], "443", AF_UNSPEC, SOCK_DGRAM, 0));
			CHECK(line != NULL && puts(strtok(line, " ")) >= 0);
			free(line);
		}
	} else {
		return 2;
	}
	return 0;
}
