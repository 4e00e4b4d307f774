/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the results of frontage/quicsocks.h: results PROXY, for a proxy with the user "ada" and the password "engine". */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <frontage/quicsocks.h>

static void check_association(const char *proxy)
{
	struct fqs_association *association;

	assert(fqs_associate(NULL, NULL, NULL, &association) == FQS_INVALID && !association);
	assert(fqs_associate("no port", NULL, NULL, &association) == FQS_INVALID && !association);
	assert(fqs_associate(proxy, "ada", NULL, &association) == FQS_INVALID && !association);
	assert(fqs_associate(proxy, "ada", "", &association) == FQS_INVALID && !association);
	assert(fqs_associate(proxy, "ada", "wrong", &association) == FQS_NOT_ALLOWED && !association);
	assert(fqs_associate(proxy, NULL, NULL, &association) == FQS_NOT_ALLOWED && !association);
	/* No proxy listens at the discard port. */
	errno = 0;
	assert(fqs_associate("[::1]:9", NULL, NULL, &association) == FQS_SYSTEM && errno == ECONNREFUSED);
	fqs_association_free(NULL);
	fqs_connection_free(NULL);
}

static void check_names(struct fqs_association *association)
{
	struct fqs_connection *connection;
	char name[300];

	memset(name, 'a', sizeof name - 1);
	name[sizeof name - 1] = 0;
	assert(fqs_connect(association, name, 443, &connection) == FQS_INVALID && !connection);
	assert(fqs_connect(association, "a b", 443, &connection) == FQS_INVALID && !connection);
	assert(fqs_connect(association, "\xff", 443, &connection) == FQS_INVALID && !connection);
	assert(fqs_connect(association, "ok.example", 0, &connection) == FQS_INVALID && !connection);
}

/* An association carries one connection at a time. */
static void check_busy(struct fqs_association *association)
{
	struct fqs_connection *first, *second;

	assert(fqs_connect(association, "ok.example", 443, &first) == FQS_OK);
	assert(fqs_connect(association, "ok.example", 443, &second) == FQS_BUSY && !second);
	fqs_release(first);
	fqs_release(first);
	assert(fqs_connect(association, "ok.example", 443, &second) == FQS_OK);
	assert(fqs_send(first, FQS_PROXIED, "x", 1) == FQS_INVALID);
	fqs_connection_free(first);
	assert(fqs_connect(association, "ok.example", 443, &first) == FQS_BUSY);
	fqs_connection_free(second);
}

static void check_paths(struct fqs_association *association)
{
	struct fqs_connection *connection;
	struct sockaddr_storage local, server;
	enum fqs_path path;
	char buffer[1500];

	assert(fqs_connect(association, "ok.example", 443, &connection) == FQS_OK);
	assert(fqs_direct(connection) == FQS_RESOLVING && fqs_timeout(connection) == -1);
	assert(fqs_receive(connection, buffer, sizeof buffer, &path) == FQS_AGAIN);
	assert(fqs_server(connection, &server) == FQS_AGAIN);
	assert(fqs_addresses(connection, FQS_PROXIED, &local, &server) == FQS_OK);
	assert(local.ss_family == AF_INET6 && server.ss_family == AF_INET6);
	assert(fqs_addresses(connection, FQS_DIRECT, &local, &server) == FQS_INVALID);
	assert(fqs_send(connection, FQS_DIRECT, "x", 1) == FQS_INVALID);
	assert(fqs_send(connection, FQS_PROXIED, "", 0) == FQS_INVALID);
	assert(fqs_send(connection, FQS_PROXIED, NULL, 0) == FQS_INVALID);
	assert(fqs_send(connection, (enum fqs_path)2, "x", 1) == FQS_INVALID);
	fqs_connection_free(connection);
}

/* Wait until the test stops the proxy. The association is freed before its connection. */
static void check_closed(struct fqs_association *association)
{
	struct fqs_connection *connection, *late;
	struct pollfd readable = { .events = POLLIN };
	enum fqs_path path;
	char buffer[1500];

	assert(fqs_connect(association, "ok.example", 443, &connection) == FQS_OK);
	readable.fd = fqs_fd(connection);
	assert(poll(&readable, 1, 0) == 0);
	puts("ready");
	fflush(stdout);
	assert(poll(&readable, 1, 60000) == 1);
	assert(fqs_receive(connection, buffer, sizeof buffer, &path) == FQS_PROXY_CLOSED);
	assert(fqs_send(connection, FQS_PROXIED, "x", 1) == FQS_PROXY_CLOSED);
	assert(fqs_connect(association, "ok.example", 443, &late) == FQS_PROXY_CLOSED && !late);
	fqs_association_free(association);
	fqs_connection_free(connection);
}

int main(int argc, char **argv)
{
	struct fqs_association *association;

	assert(argc == 2);
	for (int result = FQS_PROXY_FAILURE; result <= FQS_OK; result++)
		assert(strcmp(fqs_text(result), fqs_text(FQS_PROXY_FAILURE - 1)));
	check_association(argv[1]);
	assert(fqs_associate(argv[1], "ada", "engine", &association) == FQS_OK);
	check_names(association);
	check_busy(association);
	check_paths(association);
	check_closed(association);
	return 0;
}
