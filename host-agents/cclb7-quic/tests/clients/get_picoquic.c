/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads over several paths with picoquic (draft-ietf-quic-multipath): get_picoquic FOLDER SERVER PORT HOST SIZE ADDRESS...
 *
 * Opens a path from each local ADDRESS, which must differ from the first path's address, once the object of 1000 bytes has
 * arrived. Then downloads the object of SIZE bytes to FOLDER/_SIZE, three times in a row. Exits with 0 if all of this succeeded.
 *
 * A program of its own is necessary because picoquicdemo opens its paths in answer to the server's first packet, and ends if
 * the connection ids for them arrive in the second one.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* These headers depend on their order. */
#include <picoquic.h>
#include <picoquic_packet_loop.h>
#include <picoquic_utils.h>
#include <h3zero.h>
#include <h3zero_common.h>
#include <democlient.h>

#define ALPN "h3"
#define SCENARIO "0:-:/1000;4:1000:/%s;8:4:/%s;12:8:/%s"
#define LATER 1000 /* The "previous stream" of those that wait for the paths; no stream has this id. */
#define TIMEOUT_US 30000000

typedef struct {
	picoquic_cnx_t *connection;
	picoquic_demo_callback_ctx_t demo;
	struct sockaddr_storage server;
	char **addresses;
	int address_count;
	uint64_t available; /* A bit for each further path that the server has validated. */
	enum { CONNECTING, FIRST, PROBING, DOWNLOADING, CLOSING } stage;
} client_t;

static int on_event(picoquic_cnx_t *connection, uint64_t stream, uint8_t *bytes, size_t length,
		    picoquic_call_back_event_t event, void *context, void *stream_context)
{
	client_t *client = context;
	if (event == picoquic_callback_path_available) {
		if (stream > 0 && stream < 64) /* `stream` is the path's id. */
			client->available |= (uint64_t)1 << stream;
		return 0;
	}
	return picoquic_demo_client_callback(connection, stream, bytes, length, event, &client->demo, stream_context);
}

static int path_count(const client_t *client)
{
	return 1 + __builtin_popcountll(client->available);
}

/* Return 0 if a path from each address is being validated. */
static int probe_paths(client_t *client)
{
	for (int i = 0; i < client->address_count; i++) {
		struct sockaddr_storage local;
		int error = picoquic_store_text_addr(&local, client->addresses[i], 0);
		if (error == 0)
			error = picoquic_probe_new_path(client->connection, (struct sockaddr *)&client->server,
							(struct sockaddr *)&local, picoquic_current_time());
		if (error != 0) {
			fprintf(stderr, "%s: path refused: error %d\n", client->addresses[i], error);
			return error;
		}
	}
	return 0;
}

/* Go to the next stage if the present one is complete. */
static int advance(client_t *client)
{
	picoquic_state_enum state = picoquic_get_cnx_state(client->connection);
	int is_idle = client->demo.nb_open_streams == 0;
	if (state == picoquic_state_disconnected)
		return PICOQUIC_NO_ERROR_TERMINATE_PACKET_LOOP;
	if (client->stage == CONNECTING && state == picoquic_state_ready) {
		client->stage = FIRST;
		return picoquic_demo_client_start_streams(client->connection, &client->demo,
							  PICOQUIC_DEMO_STREAM_ID_INITIAL);
	}
	if (client->stage == FIRST && is_idle) {
		client->stage = PROBING;
		return probe_paths(client);
	}
	if (client->stage == PROBING && path_count(client) > client->address_count) {
		client->stage = DOWNLOADING;
		return picoquic_demo_client_start_streams(client->connection, &client->demo, LATER);
	}
	if (client->stage == DOWNLOADING && is_idle) {
		client->stage = CLOSING;
		return picoquic_close(client->connection, 0);
	}
	return 0;
}

static int on_loop(picoquic_quic_t *quic, picoquic_packet_loop_cb_enum mode, void *context, void *argument)
{
	(void)quic, (void)argument;
	if (mode == picoquic_packet_loop_after_receive || mode == picoquic_packet_loop_after_send)
		return advance(context);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 7) {
		fprintf(stderr, "usage: get_picoquic FOLDER SERVER PORT HOST SIZE ADDRESS...\n");
		return 2;
	}
	client_t client = { .addresses = argv + 6, .address_count = argc - 6 };
	const char *host = argv[4], *size = argv[5];
	char scenario[256];
	picoquic_demo_stream_desc_t *streams = NULL;
	size_t stream_count = 0;
	uint64_t now = picoquic_current_time();
	snprintf(scenario, sizeof scenario, SCENARIO, size, size, size);
	picoquic_quic_t *quic =
		picoquic_create(8, NULL, NULL, NULL, ALPN, NULL, NULL, NULL, NULL, NULL, now, NULL, NULL, NULL, 0);
	if (quic == NULL || picoquic_store_text_addr(&client.server, argv[2], htons((uint16_t)atoi(argv[3]))) != 0 ||
	    demo_client_parse_scenario_desc(scenario, &stream_count, &streams) != 0 ||
	    picoquic_demo_client_initialize_context(&client.demo, streams, stream_count, ALPN, 0, 0) != 0)
		return 2;
	client.demo.out_dir = argv[1];
	picoquic_set_null_verifier(quic);
	picoquic_set_default_multipath_option(quic, 1);
	picoquic_set_default_idle_timeout(quic, TIMEOUT_US / 1000);
	client.connection = picoquic_create_cnx(quic, picoquic_null_connection_id, picoquic_null_connection_id,
						(struct sockaddr *)&client.server, now, 0, host, ALPN, 1);
	if (client.connection == NULL)
		return 2;
	picoquic_set_callback(client.connection, on_event, &client);
	picoquic_enable_path_callbacks(client.connection, 1);
	int error = picoquic_start_client_cnx(client.connection);
	if (error == 0)
		error = picoquic_packet_loop(quic, 0, client.server.ss_family, 0, 0, 0, on_loop, &client);
	if (error != 0 || client.stage != CLOSING || picoquic_get_remote_error(client.connection) != 0)
		fprintf(stderr, "stage %d: error %d, local error %#llx, error from the server %#llx\n", client.stage,
			error, (unsigned long long)picoquic_get_local_error(client.connection),
			(unsigned long long)picoquic_get_remote_error(client.connection));
	else
		printf("%d paths\n", path_count(&client));
	int is_complete = error == 0 && client.stage == CLOSING;
	picoquic_demo_client_delete_context(&client.demo);
	demo_client_delete_scenario_desc(stream_count, streams);
	picoquic_free(quic);
	return !is_complete;
}
