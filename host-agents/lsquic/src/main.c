/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/3 server on lsquic whose packets carry the signals for a Frontage switch. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "listener.h"
#include "metrics.h"
#include "options.h"
#include "tls.h"

/* Seconds for responses to end after SIGTERM. */
#define DRAIN_TIME 30

struct server {
	struct options options;
	struct http http;
	struct service service;
	struct listener *listeners[MAX_LISTEN];
	int signals;       /* signalfd */
	int metrics;       /* listening socket, or -1 */
	time_t drain_ends; /* 0: the server accepts connections */
};

static void fail(const char *place)
{
	fprintf(stderr, "frontage-lsquic: %s: %s\n", place, strerror(errno));
	exit(1);
}

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void start(struct server *server)
{
	const struct options *options = &server->options;
	char reason[500];

	server->signals = open_signals();
	server->http.pace = options->pace;
	server->http.directory = open(options->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (server->http.directory < 0)
		fail(options->directory);
	if (options->access_log && !(server->http.access_log = fopen(options->access_log, "ae")))
		fail(options->access_log);
	if (options->signals.keys && !(server->http.signals = fq_open(&options->signals, reason, sizeof reason))) {
		fprintf(stderr, "frontage-lsquic: %s\n", reason);
		exit(1);
	}
	server->service = (struct service){
		.signals = server->http.signals,
		.http = &http_streams,
		.headers = &http_headers,
		.context = &server->http,
		.no_preferred_address = options->no_preferred_address,
		.tls = tls_load(options->certificate, options->private_key),
	};
	if (!server->service.tls)
		exit(1);
	if (lsquic_global_init(LSQUIC_GLOBAL_SERVER))
		fail("lsquic");
	for (unsigned i = 0; i < options->listen_count; i++)
		if (!(server->listeners[i] = listener_open(&server->service, &options->listen[i])))
			fail("--listen");
	server->metrics = -1;
	if (options->metrics.ss_family && (server->metrics = metrics_listen(&options->metrics)) < 0)
		fail("--metrics");
}

/* Reload certificate and keys. */
static void reload(struct server *server)
{
	SSL_CTX *tls = tls_load(server->options.certificate, server->options.private_key);
	char reason[500];

	if (!tls)
		return;
	if (server->service.signals && fq_reload(server->service.signals, reason, sizeof reason)) {
		fprintf(stderr, "frontage-lsquic: the previous keys remain in use: %s\n", reason);
		SSL_CTX_free(tls);
		return;
	}
	SSL_CTX_free(server->service.tls);
	server->service.tls = tls;
	for (unsigned i = 0; server->service.signals && i < server->options.listen_count; i++)
		listener_renew(server->listeners[i]);
}

static void on_signal(struct server *server)
{
	struct signalfd_siginfo info;

	if (read(server->signals, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGHUP) {
		reload(server);
		return;
	}
	server->drain_ends = now() + DRAIN_TIME;
	for (unsigned i = 0; i < server->options.listen_count; i++)
		listener_end(server->listeners[i]);
}

static unsigned connections(const struct server *server)
{
	unsigned count = 0;

	for (unsigned i = 0; i < server->options.listen_count; i++)
		count += listener_connections(server->listeners[i]);
	return count;
}

static int sooner(int one, int other)
{
	return one < 0 || (other >= 0 && other < one) ? other : one;
}

/* Wait for events, and handle them. */
static void run_once(struct server *server)
{
	struct pollfd polled[MAX_LISTEN + 2];
	unsigned count = server->options.listen_count;
	int timeout = http_pace(&server->http);

	for (unsigned i = 0; i < count; i++) {
		struct listener *listener = server->listeners[i];
		listener_process(listener);
		timeout = sooner(timeout, listener_timeout(listener));
		short events = POLLIN | (listener_is_blocked(listener) ? POLLOUT : 0);
		polled[i] = (struct pollfd){ .fd = listener_descriptor(listener), .events = events };
	}
	if (server->drain_ends)
		timeout = sooner(timeout, 100);
	polled[count] = (struct pollfd){ .fd = server->signals, .events = POLLIN };
	polled[count + 1] = (struct pollfd){ .fd = server->metrics, .events = POLLIN };
	if (poll(polled, count + 2, timeout) <= 0)
		return;
	for (unsigned i = 0; i < count; i++)
		if (polled[i].revents & POLLIN)
			listener_receive(server->listeners[i]);
	if (polled[count].revents)
		on_signal(server);
	if (polled[count + 1].revents)
		metrics_answer(server->metrics, &server->http, connections(server));
}

int main(int argc, char **argv)
{
	static struct server server;

	options_parse(&server.options, argc, argv);
	start(&server);
	while (!server.drain_ends || (connections(&server) && now() < server.drain_ends))
		run_once(&server);
	return 0;
}
