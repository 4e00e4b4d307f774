/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <errno.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include "options.h"

int metrics_listen(const struct sockaddr_storage *address)
{
	int on = 1, descriptor = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (descriptor < 0)
		return -1;
	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(descriptor, (const struct sockaddr *)address, address_length(address)) || listen(descriptor, 16)) {
		int reason = errno;
		close(descriptor);
		errno = reason;
		return -1;
	}
	return descriptor;
}

static int write_metrics(char *text, size_t size, const struct http *http, unsigned connections)
{
	uint64_t n_af = http->active, n_ff = 0;

	if (http->signals)
		fq_loads(http->signals, &n_af, &n_ff);
	return snprintf(text, size,
			"# HELP frontage_lsquic_active_flows Active responses (N_AF)\n"
			"# TYPE frontage_lsquic_active_flows gauge\n"
			"frontage_lsquic_active_flows %llu\n"
			"# HELP frontage_lsquic_future_flows Active responses with more remaining bytes than the "
			"look-ahead (N_FF)\n"
			"# TYPE frontage_lsquic_future_flows gauge\n"
			"frontage_lsquic_future_flows %llu\n"
			"# HELP frontage_lsquic_connections Connections, including those in their handshake\n"
			"# TYPE frontage_lsquic_connections gauge\n"
			"frontage_lsquic_connections %u\n"
			"# HELP frontage_lsquic_requests_total Requests\n"
			"# TYPE frontage_lsquic_requests_total counter\n"
			"frontage_lsquic_requests_total %llu\n"
			"# HELP frontage_lsquic_body_bytes_total Bytes of bodies that lsquic has accepted\n"
			"# TYPE frontage_lsquic_body_bytes_total counter\n"
			"frontage_lsquic_body_bytes_total %llu\n",
			(unsigned long long)n_af, (unsigned long long)n_ff, connections,
			(unsigned long long)http->requests, (unsigned long long)http->body_bytes);
}

void metrics_answer(int socket, const struct http *http, unsigned connections)
{
	struct timeval limit = { .tv_usec = 100000 };
	char request[2048], header[160], text[2048];
	int client = accept4(socket, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (recv(client, request, sizeof request, 0) > 0) {
		int length = write_metrics(text, sizeof text, http, connections);
		int header_length = snprintf(header, sizeof header,
					     "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
					     "Content-Length: %d\r\nConnection: close\r\n\r\n",
					     length);
		if (send(client, header, header_length, MSG_NOSIGNAL | MSG_MORE) == header_length)
			send(client, text, length, MSG_NOSIGNAL);
	}
	close(client);
}
