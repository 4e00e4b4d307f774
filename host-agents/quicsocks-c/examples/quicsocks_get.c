/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Download a URL through a QuicSocks proxy with ngtcp2 and GnuTLS, and leave the proxy: quicsocks_get PROXY CA NAME PORT PATH.
 *
 * Writes the body to standard output, and events to standard error. Exit status: 0 if the download is complete, 1 if not, 2 if the
 * arguments are invalid. NAME and PATH have up to 126 bytes each.
 *
 * cc quicsocks_get.c -lfrontage_quicsocks_c -lngtcp2 -lngtcp2_crypto_gnutls -lgnutls
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <netdb.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include <frontage/quicsocks.h>

#define IDLE_TIMEOUT (30 * NGTCP2_SECONDS)
#define WINDOW (1 << 20)

static const char priority[] =
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
	"%DISABLE_TLS13_COMPAT_MODE";

/* Bytes to send on a stream. */
struct output {
	int64_t stream;
	const uint8_t *data;
	size_t length, sent;
	int fin, fin_sent;
};

/* The DATA frames of the response (RFC 9114, section 7.2.1). */
struct body {
	uint64_t type, left; /* the current frame */
	uint8_t header[16];  /* of the next frame, as far as it has arrived */
	size_t header_length;
};

struct client {
	struct fqs_connection *socks;
	ngtcp2_conn *quic;
	gnutls_session_t tls;
	ngtcp2_crypto_conn_ref ref;
	ngtcp2_path_storage paths[2]; /* by enum fqs_path */
	int confirmed, migrating, migrated, released, done;
	struct output outputs[2]; /* the control stream, and the request */
	uint8_t request[300];
	struct body body;
};

static ngtcp2_tstamp now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (ngtcp2_tstamp)time.tv_sec * NGTCP2_SECONDS + (ngtcp2_tstamp)time.tv_nsec;
}

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "quicsocks_get: %s: %s\n", what, why);
	exit(1);
}

static void check(const char *what, int result)
{
	if (result < 0)
		fail(what, result == FQS_SYSTEM ? strerror(errno) : fqs_text(result));
}

static void check_quic(const char *what, ngtcp2_ssize result)
{
	if (result < 0)
		fail(what, ngtcp2_strerror((int)result));
}

static void check_tls(const char *what, int result)
{
	if (result < 0)
		fail(what, gnutls_strerror(result));
}

/* Return the number of bytes of a variable-length integer (RFC 9000, section 16), or 0 if it is incomplete. */
static size_t read_varint(const uint8_t *data, size_t length, uint64_t *value)
{
	size_t size = length ? (size_t)1 << (data[0] >> 6) : 1;

	if (size > length)
		return 0;
	*value = data[0] & 0x3f;
	for (size_t i = 1; i < size; i++)
		*value = *value << 8 | data[i];
	return size;
}

/* Read the header of the next frame, if it has arrived as a whole. */
static void read_frame_header(struct body *body)
{
	uint64_t type, length;
	size_t first = read_varint(body->header, body->header_length, &type);
	size_t second = first ? read_varint(body->header + first, body->header_length - first, &length) : 0;

	if (second) {
		body->type = type;
		body->left = length;
		body->header_length = 0;
	}
}

static void read_frames(struct body *body, const uint8_t *data, size_t length)
{
	while (length) {
		if (!body->left) {
			body->header[body->header_length++] = *data++;
			length--;
			read_frame_header(body);
			continue;
		}
		size_t part = body->left < length ? (size_t)body->left : length;

		if (body->type == 0 && fwrite(data, 1, part, stdout) != part)
			fail("standard output", strerror(errno));
		body->left -= part;
		data += part;
		length -= part;
	}
}

/* Append a literal with an indexed name of QPACK's static table (RFC 9204, section 4.5.4). */
static uint8_t *write_field(uint8_t *to, uint8_t index, const char *value)
{
	size_t length = strlen(value);

	*to++ = 0x50 | index;
	*to++ = (uint8_t)length;
	memcpy(to, value, length);
	return to + length;
}

/* Write a HEADERS frame with a GET request. */
static void prepare_request(struct client *client, const char *name, const char *path)
{
	/* Required insert count and base 0; ":method: GET" and ":scheme: https" of the static table. */
	uint8_t fields[270] = { 0, 0, 0xd1, 0xd7 };
	uint8_t *end = write_field(write_field(fields + 4, 0, name), 1, path);
	size_t length = (size_t)(end - fields);
	uint8_t head[] = { 0x01, (uint8_t)(0x40 | length >> 8), (uint8_t)length };
	/* Stream type 0, and empty SETTINGS. */
	static const uint8_t control[] = { 0x00, 0x04, 0x00 };

	memcpy(client->request, head, sizeof head);
	memcpy(client->request + sizeof head, fields, length);
	client->outputs[0] = (struct output){ .stream = -1, .data = control, .length = sizeof control };
	client->outputs[1] =
		(struct output){ .stream = -1, .data = client->request, .length = sizeof head + length, .fin = 1 };
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref)
{
	return ((struct client *)ref->user_data)->quic;
}

static void random_bytes(uint8_t *dest, size_t length, const ngtcp2_rand_ctx *context)
{
	(void)context;
	check_tls("random numbers", gnutls_rnd(GNUTLS_RND_RANDOM, dest, length));
}

static int new_connection_id(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t length, void *user_data)
{
	(void)quic;
	(void)user_data;
	cid->datalen = length;
	random_bytes(cid->data, length, NULL);
	random_bytes(token, NGTCP2_STATELESS_RESET_TOKENLEN, NULL);
	return 0;
}

static int on_confirmed(ngtcp2_conn *quic, void *user_data)
{
	(void)quic;
	((struct client *)user_data)->confirmed = 1;
	return 0;
}

static int on_path_validated(ngtcp2_conn *quic, uint32_t flags, const ngtcp2_path *path,
			     ngtcp2_path_validation_result result, void *user_data)
{
	(void)quic;
	(void)flags;
	(void)path;
	((struct client *)user_data)->migrated = result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS;
	return 0;
}

static int on_data(ngtcp2_conn *quic, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *data,
		   size_t length, void *user_data, void *stream_data)
{
	struct client *client = user_data;

	(void)offset;
	(void)stream_data;
	ngtcp2_conn_extend_max_stream_offset(quic, stream, length);
	ngtcp2_conn_extend_max_offset(quic, length);
	if (stream != client->outputs[1].stream)
		return 0;
	read_frames(&client->body, data, length);
	if (flags & NGTCP2_STREAM_DATA_FLAG_FIN)
		client->done = 1;
	return 0;
}

static void open_tls(struct client *client, const char *ca, const char *name)
{
	gnutls_certificate_credentials_t trust;
	gnutls_datum_t alpn = { (unsigned char *)"h3", 2 };

	check_tls("TLS", gnutls_certificate_allocate_credentials(&trust));
	check_tls(ca, gnutls_certificate_set_x509_trust_file(trust, ca, GNUTLS_X509_FMT_PEM));
	check_tls("TLS", gnutls_init(&client->tls, GNUTLS_CLIENT));
	check_tls("TLS", gnutls_priority_set_direct(client->tls, priority, NULL));
	check_tls("TLS", ngtcp2_crypto_gnutls_configure_client_session(client->tls));
	check_tls("TLS", gnutls_credentials_set(client->tls, GNUTLS_CRD_CERTIFICATE, trust));
	check_tls("TLS", gnutls_alpn_set_protocols(client->tls, &alpn, 1, GNUTLS_ALPN_MANDATORY));
	check_tls(name, gnutls_server_name_set(client->tls, GNUTLS_NAME_DNS, name, strlen(name)));
	gnutls_session_set_verify_cert(client->tls, name, 0);
	client->ref = (ngtcp2_crypto_conn_ref){ get_conn, client };
	gnutls_session_set_ptr(client->tls, &client->ref);
}

static ngtcp2_socklen length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Read the addresses of a path from the QuicSocks library. ngtcp2 returns the user data with each packet for this path. */
static ngtcp2_path *learn_path(struct client *client, enum fqs_path path)
{
	struct sockaddr_storage local, server;
	ngtcp2_path_storage *storage = &client->paths[path];

	check("addresses", fqs_addresses(client->socks, path, &local, &server));
	ngtcp2_path_storage_init(storage, (struct sockaddr *)&local, length_of(&local), (struct sockaddr *)&server,
				 length_of(&server), storage);
	return &storage->path;
}

static void open_quic(struct client *client)
{
	static const ngtcp2_callbacks callbacks = {
		.client_initial = ngtcp2_crypto_client_initial_cb,
		.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
		.encrypt = ngtcp2_crypto_encrypt_cb,
		.decrypt = ngtcp2_crypto_decrypt_cb,
		.hp_mask = ngtcp2_crypto_hp_mask_cb,
		.recv_retry = ngtcp2_crypto_recv_retry_cb,
		.update_key = ngtcp2_crypto_update_key_cb,
		.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
		.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
		.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
		.version_negotiation = ngtcp2_crypto_version_negotiation_cb,
		.rand = random_bytes,
		.get_new_connection_id = new_connection_id,
		.handshake_confirmed = on_confirmed,
		.path_validation = on_path_validated,
		.recv_stream_data = on_data,
	};
	ngtcp2_settings settings;
	ngtcp2_transport_params params;
	ngtcp2_cid dcid, scid;
	ngtcp2_path *path = learn_path(client, FQS_PROXIED);

	ngtcp2_settings_default(&settings);
	settings.initial_ts = now();
	ngtcp2_transport_params_default(&params);
	params.initial_max_data = params.initial_max_stream_data_bidi_local = params.initial_max_stream_data_uni =
		WINDOW;
	params.initial_max_streams_uni = 3;
	params.max_idle_timeout = IDLE_TIMEOUT;
	dcid.datalen = scid.datalen = 8;
	random_bytes(dcid.data, dcid.datalen, NULL);
	random_bytes(scid.data, scid.datalen, NULL);
	check_quic("QUIC", ngtcp2_conn_client_new(&client->quic, &dcid, &scid, path, NGTCP2_PROTO_VER_V1, &callbacks,
						  &settings, &params, NULL, client));
	ngtcp2_conn_set_tls_native_handle(client->quic, client->tls);
}

/* Open both streams once the server permits it. */
static void open_streams(struct client *client)
{
	if (client->outputs[1].stream >= 0 || !ngtcp2_conn_get_handshake_completed(client->quic))
		return;
	check_quic("control stream", ngtcp2_conn_open_uni_stream(client->quic, &client->outputs[0].stream, NULL));
	check_quic("request", ngtcp2_conn_open_bidi_stream(client->quic, &client->outputs[1].stream, NULL));
}

/* Return the next stream with bytes or an end to send, or NULL. */
static struct output *next_output(struct client *client)
{
	for (struct output *output = client->outputs; output < client->outputs + 2; output++)
		if (output->stream >= 0 && (output->sent < output->length || output->fin > output->fin_sent))
			return output;
	return NULL;
}

static void send_packet(struct client *client, const ngtcp2_path *path, const uint8_t *packet, size_t length)
{
	int is_direct = path->user_data == &client->paths[FQS_DIRECT];
	int result = fqs_send(client->socks, is_direct ? FQS_DIRECT : FQS_PROXIED, packet, length);

	/* QUIC retransmits packets that did not fit into the socket's buffer or whose path was released. */
	if (result != FQS_AGAIN && result != FQS_INVALID)
		check("send", result);
}

/* Send all packets that QUIC wants to send. */
static void send_packets(struct client *client)
{
	uint8_t packet[1452];
	ngtcp2_path_storage path;
	ngtcp2_pkt_info info;

	open_streams(client);
	ngtcp2_path_storage_zero(&path);
	for (;;) {
		struct output *output = next_output(client);
		ngtcp2_vec data = { 0 };
		ngtcp2_ssize taken = -1;

		if (output)
			data = (ngtcp2_vec){ (uint8_t *)output->data + output->sent, output->length - output->sent };
		ngtcp2_ssize written = ngtcp2_conn_writev_stream(
			client->quic, &path.path, &info, packet, sizeof packet, &taken,
			output && output->fin ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE,
			output ? output->stream : -1, &data, 1, now());

		check_quic("write", written);
		if (output && taken >= 0) {
			output->sent += (size_t)taken;
			output->fin_sent = output->fin && output->sent == output->length;
		}
		if (!written)
			return;
		send_packet(client, &path.path, packet, (size_t)written);
	}
}

/* Receive all packets. Return whether one came on the direct path. */
static int receive_packets(struct client *client)
{
	uint8_t packet[65536];
	ngtcp2_pkt_info info = { 0 };
	int direct = 0;

	for (;;) {
		enum fqs_path path;
		ssize_t length = fqs_receive(client->socks, packet, sizeof packet, &path);

		if (length == FQS_AGAIN)
			return direct;
		check("receive", (int)length);
		if (path == FQS_DIRECT && !client->migrating)
			continue;
		direct |= path == FQS_DIRECT;
		check_quic("packet", ngtcp2_conn_read_pkt(client->quic, &client->paths[path].path, &info, packet,
							  (size_t)length, now()));
	}
}

static void print_direct(const struct client *client)
{
	struct sockaddr_storage server;
	char host[NI_MAXHOST], port[NI_MAXSERV];

	check("server", fqs_server(client->socks, &server));
	if (getnameinfo((struct sockaddr *)&server, length_of(&server), host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV))
		fail("server", "invalid address");
	fprintf(stderr, "direct: %s port %s\n", host, port);
}

/* Migrate once the direct path works and the handshake is confirmed, and leave the proxy once the server has followed. */
static void change_path(struct client *client, int received_directly)
{
	if (client->confirmed && !client->migrating && fqs_direct(client->socks) == FQS_REACHABLE) {
		client->migrating = 1;
		check_quic("migration",
			   ngtcp2_conn_initiate_migration(client->quic, learn_path(client, FQS_DIRECT), now()));
	} else if (client->migrated && received_directly && !client->released) {
		client->released = 1;
		fqs_release(client->socks);
		print_direct(client);
	}
}

static int wait_ms(const struct client *client)
{
	ngtcp2_tstamp expiry = ngtcp2_conn_get_expiry(client->quic), at = now();
	uint64_t quic = expiry <= at ? 0 : (expiry - at) / NGTCP2_MILLISECONDS + 1;
	int socks = fqs_timeout(client->socks);

	if (socks >= 0 && (uint64_t)socks < quic)
		return socks;
	return quic < 1000 ? (int)quic : 1000;
}

static void download(struct client *client)
{
	struct pollfd readable = { .fd = fqs_fd(client->socks), .events = POLLIN };

	while (!client->done) {
		send_packets(client);
		if (poll(&readable, 1, wait_ms(client)) < 0)
			fail("poll", strerror(errno));
		change_path(client, receive_packets(client));
		if (ngtcp2_conn_get_expiry(client->quic) <= now())
			check_quic("QUIC", ngtcp2_conn_handle_expiry(client->quic, now()));
	}
}

static void close_quic(struct client *client)
{
	uint8_t packet[1452];
	ngtcp2_path_storage path;
	ngtcp2_pkt_info info;
	ngtcp2_connection_close_error error;

	ngtcp2_path_storage_zero(&path);
	ngtcp2_connection_close_error_default(&error);
	/* H3_NO_ERROR (RFC 9114, section 8.1). */
	ngtcp2_connection_close_error_set_application_error(&error, 0x100, NULL, 0);
	ngtcp2_ssize written = ngtcp2_conn_write_connection_close(client->quic, &path.path, &info, packet,
								  sizeof packet, &error, now());
	check_quic("close", written);
	send_packet(client, &path.path, packet, (size_t)written);
	ngtcp2_conn_del(client->quic);
	gnutls_deinit(client->tls);
}

int main(int argc, char **argv)
{
	struct fqs_association *association;
	struct client client = { 0 };

	if (argc != 6 || strlen(argv[3]) > 126 || strlen(argv[5]) > 126) {
		fprintf(stderr, "usage: quicsocks_get PROXY CA NAME PORT PATH\n");
		return 2;
	}
	const char *name = argv[3];

	check(argv[1], fqs_associate(argv[1], NULL, NULL, &association));
	check(name, fqs_connect(association, name, (uint16_t)atoi(argv[4]), &client.socks));
	prepare_request(&client, name, argv[5]);
	open_tls(&client, argv[2], name);
	open_quic(&client);
	download(&client);
	close_quic(&client);
	fqs_connection_free(client.socks);
	fqs_association_free(association);
	if (fflush(stdout))
		fail("standard output", strerror(errno));
	return 0;
}
