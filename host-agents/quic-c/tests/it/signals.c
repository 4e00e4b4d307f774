/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the library as a server does. The test runs it with test vectors. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frontage/quic.h>

static struct fq_settings settings(const char *keys, unsigned sid)
{
	struct fq_settings settings = { .keys = keys,
					.bandwidth = 8000000, /* a byte is a microsecond */
					.sid = sid,
					.sid_v4 = sid ^ 1,
					.port = 443 };

	assert(inet_pton(AF_INET6, "2001:db8:0:7::", &settings.server_prefix) == 1);
	assert(inet_pton(AF_INET6, "2001:db8:ffff::", &settings.cookie_prefix) == 1);
	return settings;
}

static struct fq *open_server(const struct fq_settings *settings)
{
	char error[200] = "";
	struct fq *server = fq_open(settings, error, sizeof error);

	if (!server) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	return server;
}

static void print_address(const struct in6_addr *address)
{
	char text[INET6_ADDRSTRLEN];

	printf("%s", inet_ntop(AF_INET6, address, text, sizeof text));
}

static struct sockaddr_in6 local_address(const char *text)
{
	struct sockaddr_in6 local = { .sin6_family = AF_INET6, .sin6_port = htons(443) };

	assert(inet_pton(AF_INET6, text, &local.sin6_addr) == 1);
	return local;
}

/* Return the server's own address at which packets to its preferred address arrive. */
static struct sockaddr_in6 cookie_address(const struct fq *server)
{
	struct sockaddr_in6 preferred, local = local_address("2001:db8:0:7::");

	fq_preferred_address(server, &preferred);
	memcpy(&local.sin6_addr.s6_addr[8], &preferred.sin6_addr.s6_addr[8], 8);
	return local;
}

static struct in6_addr source(struct fq *server, struct fq_connection *connection, uint64_t batch,
			      const struct sockaddr_in6 *local)
{
	struct in6_addr address;

	assert(fq_source(server, connection, batch, (const struct sockaddr *)local, &address) == 1);
	return address;
}

/* Send a batch with `rpt` remaining bytes, while `n_af` responses are active, of which `n_ff` are future ones. */
static void print_source(const char *keys, unsigned sid, int at_cookie, uint64_t rpt, uint64_t n_af, uint64_t n_ff)
{
	struct fq_settings with = settings(keys, sid);

	with.look_ahead = n_ff == 0 ? UINT64_MAX : rpt ? rpt - 1 : 0;
	struct fq *server = open_server(&with);
	struct fq_connection *connection = fq_connection_new(server);
	struct fq_connection *other = fq_connection_new(server);
	struct fq_response **responses = calloc(n_af, sizeof *responses);
	uint64_t future = n_ff && rpt ? n_ff - 1 : n_ff;

	responses[0] = fq_response_begin(connection, rpt);
	for (uint64_t i = 1; i < n_af; i++)
		responses[i] = fq_response_begin(other, i <= future ? rpt + 1 : 0);
	fq_response_sent(responses[0], 0);
	struct sockaddr_in6 local = at_cookie ? cookie_address(server) : local_address("2001:db8:0:7::1");
	struct in6_addr address = source(server, connection, 1, &local);
	print_address(&address);
	puts("");
	for (uint64_t i = 0; i < n_af; i++)
		fq_response_end(responses[i]);
	free(responses);
	fq_connection_free(other);
	fq_connection_free(connection);
	fq_close(server);
}

static void print_preferred(const char *keys, unsigned sid)
{
	struct fq_settings with = settings(keys, sid);
	struct fq *server = open_server(&with);
	struct sockaddr_in6 preferred;

	fq_preferred_address(server, &preferred);
	print_address(&preferred.sin6_addr);
	printf(" %u\n", ntohs(preferred.sin6_port));
	fq_close(server);
}

static void print_ids(const char *keys, unsigned sid)
{
	struct fq_settings with = settings(keys, sid);
	struct fq *server = open_server(&with);
	const int families[] = { AF_INET6, AF_INET6, AF_INET };

	for (int i = 0; i < 3; i++) {
		uint8_t id[FQ_CONNECTION_ID];
		fq_connection_id(server, families[i], id);
		for (int j = 0; j < FQ_CONNECTION_ID; j++)
			printf("%02x", id[j]);
		puts("");
	}
	fq_close(server);
}

static int same(const struct in6_addr *one, const struct in6_addr *other)
{
	return !memcmp(one, other, sizeof *one);
}

/* All packets of a batch have one address, and the loads count responses until their end. */
static void check_batches(const char *keys)
{
	struct fq_settings with = settings(keys, 7);
	struct fq *server = open_server(&with);
	struct fq_connection *connection = fq_connection_new(server);
	struct sockaddr_in6 local = local_address("2001:db8:0:7::1");
	struct in6_addr idle = source(server, connection, 1, &local);
	struct in6_addr none = source(server, NULL, 1, &local);
	uint64_t n_af, n_ff;

	assert(same(&idle, &none));
	struct fq_response *large = fq_response_begin(connection, 900000),
			   *small = fq_response_begin(connection, 300000);
	fq_loads(server, &n_af, &n_ff);
	assert(n_af == 2 && n_ff == 2);
	fq_response_sent(large, 100000);
	fq_response_sent(small, 100000);
	struct in6_addr smallest = source(server, connection, 2, &local);
	struct in6_addr again = source(server, connection, 2, &local);
	assert(same(&smallest, &again) && !same(&smallest, &idle));
	/* A batch without response bytes repeats the RPT, and one with 800,000 remaining bytes does not. */
	struct in6_addr repeated = source(server, connection, 3, &local);
	assert(same(&smallest, &repeated));
	fq_response_sent(large, 200000);
	struct in6_addr larger = source(server, connection, 4, &local);
	assert(!same(&smallest, &larger));
	/* Responses may outlive their connection. */
	fq_response_end(large);
	fq_connection_free(connection);
	fq_response_end(small);
	fq_loads(server, &n_af, &n_ff);
	assert(n_af == 0 && n_ff == 0);
	fq_close(server);
}

static void check_addresses(const char *keys)
{
	struct fq_settings with = settings(keys, 7);
	struct fq *server = open_server(&with);
	struct sockaddr_in6 foreign = local_address("2001:db8:0:8::1");
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct in6_addr address;

	assert(fq_source(server, NULL, 1, (struct sockaddr *)&foreign, &address) == 0);
	assert(fq_source(server, NULL, 1, (struct sockaddr *)&v4, &address) == 0);
	fq_close(server);
}

static void write_keys(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A client at the previous key's address keeps that key, and an invalid file changes nothing. */
static void check_rotation(const char *keys)
{
	static const char rotated[] =
		"[[keys]]\nid = 4\nsecret = \"00112233445566778899aabbccddeeff\"\n"
		"[[keys]]\nid = 5\nsecret = \"ffeeddccbbaa99887766554433221100\"\n";
	struct fq_settings with = settings(keys, 7);
	struct fq *server = open_server(&with);
	struct sockaddr_in6 old = cookie_address(server), preferred;
	struct in6_addr before = source(server, NULL, 1, &old);
	char error[200] = "";

	write_keys(keys, rotated);
	assert(fq_reload(server, error, sizeof error) == 0);
	struct in6_addr after = source(server, NULL, 1, &old);
	assert(same(&before, &after));
	fq_preferred_address(server, &preferred);
	assert(memcmp(&preferred.sin6_addr.s6_addr[8], &old.sin6_addr.s6_addr[8], 8));
	write_keys(keys, "[[keys]]\nid = 4\nsecret = \"zz\"\n");
	assert(fq_reload(server, error, sizeof error) == -1 && strstr(error, ": secret: not hexadecimal"));
	assert(fq_reload(server, error, 10) == -1 && strlen(error) == 9);
	assert(fq_reload(server, NULL, 0) == -1);
	struct sockaddr_in6 unchanged;
	fq_preferred_address(server, &unchanged);
	assert(same(&unchanged.sin6_addr, &preferred.sin6_addr));
	fq_close(server);
}

static void check_settings(const char *keys)
{
	struct fq_settings invalid = settings(keys, 7);
	char error[200] = "";

	invalid.bandwidth = 0;
	assert(!fq_open(&invalid, error, sizeof error) && strstr(error, "invalid bandwidth 0"));
	invalid = settings(keys, 7);
	invalid.server_prefix.s6_addr[15] = 1;
	assert(!fq_open(&invalid, error, sizeof error) &&
	       strstr(error, "server_prefix: invalid prefix 2001:db8:0:7::1/64"));
	invalid = settings("/nonexistent", 7);
	assert(!fq_open(&invalid, error, sizeof error) && strstr(error, "/nonexistent"));
}

int main(int argc, char **argv)
{
	assert(argc >= 3);
	const char *keys = argv[2];
	unsigned sid = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	if (!strcmp(argv[1], "preferred")) {
		print_preferred(keys, sid);
	} else if (!strcmp(argv[1], "ids")) {
		print_ids(keys, sid);
	} else if (!strcmp(argv[1], "source")) {
		assert(argc == 8);
		print_source(keys, sid, atoi(argv[4]), strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10),
			     strtoull(argv[7], NULL, 10));
	} else {
		check_settings(keys);
		check_batches(keys);
		check_addresses(keys);
		check_rotation(keys);
	}
	return 0;
}
