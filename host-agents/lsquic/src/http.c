/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <lsxpack_header.h>

#include "log.h"

#define MAX_HEADERS 16384
#define MAX_PATH 1024
#define CHUNK 65536
#define PACE_INTERVAL 100

struct lsquic_conn_ctx {
	struct http *http;
	struct fq_connection *signals;
	char client[INET6_ADDRSTRLEN + 10];
};

/* The fields of a request that matter here. */
struct request {
	struct lsxpack_header header;
	char *buffer;
	size_t size;
	char method[16];
	char path[MAX_PATH];
	char authority[256];
};

struct response {
	struct http *http;
	struct request *request;
	struct fq_response *signals;
	struct response *next, **previous; /* in http->paced */
	lsquic_stream_t *stream;
	int file;               /* -1: none */
	uint64_t size, written; /* total bytes, and bytes that lsquic has accepted */
	double began;           /* for the pace; monotonic */
	double time;            /* of the request, in seconds since 1970 */
	unsigned status;
	bool is_active, has_header, is_complete;
	char *chunk;
	size_t chunk_at, chunk_end;
};

/* lsquic's name for it */
struct lsquic_stream_ctx {
	struct response response;
};

struct fq_connection *http_signals(lsquic_conn_ctx_t *connection)
{
	return connection ? connection->signals : NULL;
}

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void write_client(char *text, size_t size, const struct sockaddr *peer)
{
	char address[INET6_ADDRSTRLEN];

	if (peer->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
		inet_ntop(AF_INET6, &v6->sin6_addr, address, sizeof address);
		snprintf(text, size, "[%s]:%u", address, ntohs(v6->sin6_port));
	} else {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
		inet_ntop(AF_INET, &v4->sin_addr, address, sizeof address);
		snprintf(text, size, "%s:%u", address, ntohs(v4->sin_port));
	}
}

static lsquic_conn_ctx_t *on_new_connection(void *context, lsquic_conn_t *connection)
{
	struct http *http = context;
	lsquic_conn_ctx_t *state = calloc(1, sizeof *state);
	const struct sockaddr *local, *peer;

	if (!state)
		abort();
	state->http = http;
	if (http->signals)
		state->signals = fq_connection_new(http->signals);
	if (lsquic_conn_get_sockaddr(connection, &local, &peer) == 0)
		write_client(state->client, sizeof state->client, peer);
	return state;
}

static void on_connection_closed(lsquic_conn_t *connection)
{
	lsquic_conn_ctx_t *state = lsquic_conn_get_ctx(connection);

	lsquic_conn_set_ctx(connection, NULL);
	fq_connection_free(state->signals);
	free(state);
}

static lsquic_stream_ctx_t *on_new_stream(void *context, lsquic_stream_t *stream)
{
	lsquic_stream_ctx_t *state;

	if (!stream)
		return NULL;
	state = calloc(1, sizeof *state);
	if (!state)
		abort();
	state->response = (struct response){ .http = context, .stream = stream, .file = -1 };
	lsquic_stream_wantread(stream, 1);
	return state;
}

/* Open the file of a request. Return the status of the response. */
static unsigned open_file(struct response *response)
{
	struct request *request = response->request;
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH };
	struct stat status;

	if (strcmp(request->method, "GET") && strcmp(request->method, "HEAD"))
		return 405;
	char *query = strchr(request->path, '?');
	if (query)
		*query = 0;
	response->file = -1;
	if (request->path[0] == '/' && request->path[1])
		response->file = syscall(SYS_openat2, response->http->directory, request->path + 1, &how, sizeof how);
	if (query)
		*query = '?';
	if (response->file < 0)
		return 404;
	if (fstat(response->file, &status) || !S_ISREG(status.st_mode)) {
		close(response->file);
		response->file = -1;
		return 404;
	}
	response->size = status.st_size;
	return 200;
}

static void link_paced(struct response *response)
{
	response->next = response->http->paced;
	response->previous = &response->http->paced;
	if (response->next)
		response->next->previous = &response->next;
	response->http->paced = response;
}

static void unlink_paced(struct response *response)
{
	if (!response->previous)
		return;
	*response->previous = response->next;
	if (response->next)
		response->next->previous = response->previous;
	response->previous = NULL;
}

static void begin(struct response *response)
{
	lsquic_conn_ctx_t *connection = lsquic_conn_get_ctx(lsquic_stream_conn(response->stream));

	response->began = now(CLOCK_MONOTONIC);
	response->time = now(CLOCK_REALTIME);
	response->is_active = true;
	response->status = open_file(response);
	if (!strcmp(response->request->method, "HEAD") && response->file >= 0) {
		close(response->file);
		response->file = -1;
	}
	if (connection->signals)
		response->signals = fq_response_begin(connection->signals, response->file < 0 ? 0 : response->size);
	response->http->requests++;
	response->http->active++;
	if (response->http->pace && response->file >= 0)
		link_paced(response);
	lsquic_stream_wantwrite(response->stream, 1);
}

static void on_read(lsquic_stream_t *stream, lsquic_stream_ctx_t *state)
{
	struct response *response = &state->response;
	char body[4096];
	ssize_t count;

	if (!response->request)
		response->request = lsquic_stream_get_hset(stream);
	if (!response->request) {
		lsquic_stream_close(stream);
		return;
	}
	while ((count = lsquic_stream_read(stream, body, sizeof body)) > 0)
		;
	if (count < 0 && errno == EWOULDBLOCK)
		return;
	lsquic_stream_shutdown(stream, 0);
	if (count < 0)
		lsquic_stream_close(stream);
	else
		begin(response);
}

/* Add a header field. `*used` counts the bytes of `buffer`. */
static void set_field(struct lsxpack_header *field, char *buffer, size_t *used, const char *name, const char *value)
{
	size_t name_length = strlen(name), value_length = strlen(value);

	memcpy(buffer + *used, name, name_length);
	memcpy(buffer + *used + name_length, value, value_length);
	lsxpack_header_set_offset2(field, buffer + *used, 0, name_length, name_length, value_length);
	*used += name_length + value_length;
}

/* Return the media type of a file by its name. */
static const char *media_type(const char *path)
{
	static const char *const types[][2] = {
		{ ".css", "text/css" },          { ".html", "text/html" }, { ".js", "text/javascript" },
		{ ".json", "application/json" }, { ".png", "image/png" },  { ".txt", "text/plain" },
	};
	size_t length = strcspn(path, "?");

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t suffix = strlen(types[i][0]);
		if (length > suffix && !memcmp(path + length - suffix, types[i][0], suffix))
			return types[i][1];
	}
	return "application/octet-stream";
}

static bool send_header(struct response *response)
{
	struct lsxpack_header fields[3];
	char buffer[256], status[8], length[24];
	size_t used = 0;
	bool has_body = response->status == 200;

	snprintf(status, sizeof status, "%u", response->status);
	snprintf(length, sizeof length, "%llu", (unsigned long long)(has_body ? response->size : 0));
	set_field(&fields[0], buffer, &used, ":status", status);
	set_field(&fields[1], buffer, &used, "content-length", length);
	set_field(&fields[2], buffer, &used, "content-type", media_type(response->request->path));
	lsquic_http_headers_t headers = { .count = has_body ? 3 : 2, .headers = fields };
	return lsquic_stream_send_headers(response->stream, &headers, 0) == 0;
}

/* Return the bytes that the response may have sent by now. */
static uint64_t allowed(const struct response *response)
{
	double seconds = now(CLOCK_MONOTONIC) - response->began;

	if (!response->http->pace)
		return response->size;
	uint64_t bytes = (seconds + PACE_INTERVAL / 1e3) * response->http->pace;
	return bytes < response->size ? bytes : response->size;
}

/* Read the next bytes of the file. lsquic calls it several times per write. If the file has shrunk, the rest is zeros. */
static size_t read_file(void *context, void *buffer, size_t count)
{
	struct response *response = context;
	size_t done = 0;

	while (done < count) {
		if (response->chunk_at == response->chunk_end) {
			ssize_t got = pread(response->file, response->chunk, CHUNK, response->written);
			if (got <= 0) {
				memset(response->chunk, 0, CHUNK);
				got = CHUNK;
			}
			response->chunk_at = 0;
			response->chunk_end = got;
		}
		size_t part = response->chunk_end - response->chunk_at;
		if (part > count - done)
			part = count - done;
		memcpy((char *)buffer + done, response->chunk + response->chunk_at, part);
		response->chunk_at += part;
		response->written += part;
		done += part;
	}
	return done;
}

static size_t remaining(void *context)
{
	const struct response *response = context;

	return allowed(response) - response->written;
}

/* Write as much of the file as the congestion window permits. Return false if the connection failed. */
static bool write_body(struct response *response)
{
	struct lsquic_reader reader = { .lsqr_read = read_file, .lsqr_size = remaining, .lsqr_ctx = response };

	if (response->file < 0 || response->written == response->size)
		return true;
	if (!response->chunk && !(response->chunk = malloc(CHUNK)))
		return false;
	uint64_t before = response->written;
	if (lsquic_stream_writef(response->stream, &reader) < 0)
		return false;
	response->http->body_bytes += response->written - before;
	if (response->signals && response->written > before)
		fq_response_sent(response->signals, response->written);
	return true;
}

/* The QUIC library has accepted the last byte. */
static void end(struct response *response)
{
	if (response->signals)
		fq_response_end(response->signals);
	response->signals = NULL;
	if (response->is_active)
		response->http->active--;
	response->is_active = false;
	unlink_paced(response);
}

static void on_write(lsquic_stream_t *stream, lsquic_stream_ctx_t *state)
{
	struct response *response = &state->response;

	if (!response->has_header && !send_header(response)) {
		lsquic_stream_close(stream);
		return;
	}
	response->has_header = true;
	if (!write_body(response)) {
		lsquic_stream_close(stream);
		return;
	}
	if (response->file >= 0 && response->written < response->size) {
		if (allowed(response) == response->written) {
			lsquic_stream_flush(stream);
			lsquic_stream_wantwrite(stream, 0); /* until http_pace() */
		}
		return;
	}
	response->is_complete = true;
	lsquic_stream_shutdown(stream, 1);
	end(response);
}

/* All of the response was acknowledged, or it was aborted (es_delay_onclose). */
static void on_close(lsquic_stream_t *stream, lsquic_stream_ctx_t *state)
{
	struct response *response = &state->response;
	lsquic_conn_ctx_t *connection = lsquic_conn_get_ctx(lsquic_stream_conn(stream));

	end(response);
	if (response->request && response->http->access_log) {
		struct log_line line = {
			.client = connection->client,
			.method = response->request->method,
			.authority = response->request->authority,
			.path = response->request->path,
			.status = response->status,
			.bytes = response->written,
			.time = response->time,
			.seconds = now(CLOCK_REALTIME) - response->time,
			.is_whole = response->is_complete,
		};
		log_write(response->http->access_log, &line);
	}
	if (response->file >= 0)
		close(response->file);
	free(response->chunk);
	if (response->request)
		http_headers.hsi_discard_header_set(response->request);
	free(state);
}

int http_pace(struct http *http)
{
	if (!http->paced)
		return -1;
	double time = now(CLOCK_MONOTONIC);
	double wait = http->pace_at - time;
	if (wait <= 0) {
		for (struct response *response = http->paced; response; response = response->next)
			lsquic_stream_wantwrite(response->stream, 1);
		wait = PACE_INTERVAL / 1e3;
		http->pace_at = time + wait;
	}
	return (int)(wait * 1e3) + 1;
}

static void *create_request(void *context, lsquic_stream_t *stream, int is_push)
{
	(void)context;
	(void)stream;
	(void)is_push;
	return calloc(1, sizeof(struct request));
}

static struct lsxpack_header *prepare_field(void *state, struct lsxpack_header *field, size_t space)
{
	struct request *request = state;

	if (space > MAX_HEADERS)
		return NULL;
	if (space > request->size) {
		char *larger = realloc(request->buffer, space);
		if (!larger)
			return NULL;
		request->buffer = larger;
		request->size = space;
	}
	if (field) {
		field->buf = request->buffer;
		field->val_len = space;
		return field;
	}
	lsxpack_header_prepare_decode(&request->header, request->buffer, 0, request->size);
	return &request->header;
}

static int copy_value(char *text, size_t size, const struct lsxpack_header *field)
{
	if (field->val_len >= size)
		return 1;
	memcpy(text, lsxpack_header_get_value(field), field->val_len);
	text[field->val_len] = 0;
	return 0;
}

static bool has_name(const struct lsxpack_header *field, const char *name)
{
	return field->name_len == strlen(name) && !memcmp(lsxpack_header_get_name(field), name, field->name_len);
}

static int process_field(void *state, struct lsxpack_header *field)
{
	struct request *request = state;

	if (!field)
		return request->method[0] && request->path[0] ? 0 : 1;
	if (has_name(field, ":method"))
		return copy_value(request->method, sizeof request->method, field);
	if (has_name(field, ":path"))
		return copy_value(request->path, sizeof request->path, field);
	if (has_name(field, ":authority"))
		return copy_value(request->authority, sizeof request->authority, field);
	return 0;
}

static void discard_request(void *state)
{
	struct request *request = state;

	free(request->buffer);
	free(request);
}

const struct lsquic_hset_if http_headers = {
	.hsi_create_header_set = create_request,
	.hsi_prepare_decode = prepare_field,
	.hsi_process_header = process_field,
	.hsi_discard_header_set = discard_request,
};

const struct lsquic_stream_if http_streams = {
	.on_new_conn = on_new_connection,
	.on_conn_closed = on_connection_closed,
	.on_new_stream = on_new_stream,
	.on_read = on_read,
	.on_write = on_write,
	.on_close = on_close,
};
