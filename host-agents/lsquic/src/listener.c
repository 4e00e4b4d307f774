/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lsquic fixes the preferred address of an engine when it creates the engine. After a key rotation, a new engine thus serves new
 * connections, and previous engines keep theirs until they end. The last byte of a connection id contains the engine; the table of
 * handshakes maps the ids that clients choose to engines.
 */
#include "listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "send.h"

#define BATCH 64
#define DATAGRAM 2048
#define RECEIVE_BUFFER (2 << 20)
#define MAX_ENGINES 8
#define HANDSHAKES 4096
/* Number of handshakes without address validation beyond which clients get a Retry. */
#define MAX_UNVALIDATED 256
#define CUBIC 1 /* es_cc_algo */
#define LONG_HEADER 0x80
/* Offset of the destination connection id in a long header, after its length (RFC 8999, section 5.1). */
#define LONG_ID 6

struct engine {
	lsquic_engine_t *lsquic; /* NULL: unused */
	struct listener *listener;
	uint8_t tag;
};

struct listener {
	struct service *service;
	struct outlet outlet;
	struct engine engines[MAX_ENGINES];
	struct engine *newest;
	/* The engine of each handshake, by hash of the connection id that its client chose. */
	struct {
		uint64_t hash;
		uint8_t tag;
	} handshakes[HANDSHAKES];
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	struct sockaddr_storage peers[BATCH];
	unsigned char datagrams[BATCH][DATAGRAM];
	unsigned char control[BATCH][CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static uint64_t hash(const unsigned char *id, size_t length)
{
	uint64_t value = 14695981039346656037u; /* FNV-1a; collisions cost one handshake during a key rotation */

	while (length--)
		value = (value ^ *id++) * 1099511628211u;
	return value;
}

static void generate_id(void *context, lsquic_conn_t *connection, uint8_t *id, unsigned length)
{
	struct engine *engine = context;

	(void)connection;
	if (length != FQ_CONNECTION_ID)
		abort(); /* es_scid_len */
	fq_connection_id(engine->listener->service->signals, engine->listener->outlet.family, id);
	id[FQ_CONNECTION_ID - 1] = engine->tag;
}

static struct ssl_ctx_st *get_tls(void *peer, const struct sockaddr *local)
{
	struct outlet *outlet = peer;

	(void)local;
	return ((struct service *)outlet->service)->tls;
}

static struct ssl_ctx_st *look_up_certificate(void *context, const struct sockaddr *local, const char *name)
{
	(void)local;
	(void)name;
	return ((struct service *)context)->tls;
}

/* Write the 24 bytes of es_preferred_address, whose ports lsquic expects in host byte order. */
static void set_preferred_address(struct lsquic_engine_settings *settings, const struct fq *signals)
{
	struct sockaddr_in6 address;

	fq_preferred_address(signals, &address);
	uint16_t port = ntohs(address.sin6_port);
	memcpy(settings->es_preferred_address + 6, &address.sin6_addr, 16);
	memcpy(settings->es_preferred_address + 22, &port, 2);
}

static bool start_engine(struct listener *listener, struct engine *engine)
{
	struct service *service = listener->service;
	struct lsquic_engine_settings settings;

	lsquic_engine_init_settings(&settings, LSENG_HTTP_SERVER);
	settings.es_versions = 1 << LSQVER_I001;
	settings.es_max_inchoate = MAX_UNVALIDATED;
	settings.es_delay_onclose = 1;
	settings.es_ecn = 0;
	settings.es_cc_algo = CUBIC;
	settings.es_max_batch_size = OUTLET_BATCH;
	settings.es_scid_len = FQ_CONNECTION_ID;
	if (service->signals && !service->no_preferred_address && listener->outlet.family == AF_INET6)
		set_preferred_address(&settings, service->signals);
	struct lsquic_engine_api api = {
		.ea_settings = &settings,
		.ea_stream_if = service->http,
		.ea_stream_if_ctx = service->context,
		.ea_packets_out = outlet_send,
		.ea_packets_out_ctx = &listener->outlet,
		.ea_lookup_cert = look_up_certificate,
		.ea_cert_lu_ctx = service,
		.ea_get_ssl_ctx = get_tls,
		.ea_hsi_if = service->headers,
		.ea_hsi_ctx = service->context,
		.ea_generate_scid = service->signals ? generate_id : NULL,
		.ea_gen_scid_ctx = engine,
	};
	engine->listener = listener;
	engine->lsquic = lsquic_engine_new(LSENG_HTTP_SERVER, &api);
	return engine->lsquic != NULL;
}

static int bind_socket(const struct sockaddr_storage *address)
{
	int descriptor = socket(address->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
	int on = 1, buffer = RECEIVE_BUFFER;
	bool is_v6 = address->ss_family == AF_INET6;
	socklen_t length = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (descriptor < 0)
		return -1;
	setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
	/* lsquic probes the path MTU (RFC 9000, section 14.3), so the kernel must not fragment. */
	int probe = is_v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
	if (is_v6) {
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
		/* Responses have source addresses that no interface has (ipv6(7)). */
		setsockopt(descriptor, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
	} else {
		setsockopt(descriptor, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
		setsockopt(descriptor, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
	}
	if (bind(descriptor, (const struct sockaddr *)address, length)) {
		int reason = errno;
		close(descriptor);
		errno = reason;
		return -1;
	}
	return descriptor;
}

struct listener *listener_open(struct service *service, const struct sockaddr_storage *address)
{
	struct listener *listener = calloc(1, sizeof *listener);

	if (!listener)
		return NULL;
	listener->service = service;
	listener->outlet.service = service;
	listener->outlet.signals = service->signals;
	listener->outlet.family = address->ss_family;
	listener->outlet.port =
		((const struct sockaddr_in *)address)->sin_port; /* at the same position in both families */
	listener->outlet.descriptor = bind_socket(address);
	if (listener->outlet.descriptor < 0 || !start_engine(listener, &listener->engines[0])) {
		free(listener);
		return NULL;
	}
	listener->newest = &listener->engines[0];
	for (unsigned i = 0; i < MAX_ENGINES; i++)
		listener->engines[i].tag = i;
	for (unsigned i = 0; i < BATCH; i++) {
		listener->vectors[i] = (struct iovec){ listener->datagrams[i], DATAGRAM };
		listener->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &listener->peers[i],
			.msg_iov = &listener->vectors[i],
			.msg_iovlen = 1,
			.msg_control = listener->control[i],
		};
	}
	return listener;
}

int listener_descriptor(const struct listener *listener)
{
	return listener->outlet.descriptor;
}

bool listener_is_blocked(const struct listener *listener)
{
	return listener->outlet.is_blocked;
}

/* Read the server's address from the control message. */
static void local_address(const struct listener *listener, struct msghdr *header, struct sockaddr_storage *local)
{
	*local = (struct sockaddr_storage){ .ss_family = listener->outlet.family };
	((struct sockaddr_in *)local)->sin_port = listener->outlet.port;
	for (struct cmsghdr *message = CMSG_FIRSTHDR(header); message; message = CMSG_NXTHDR(header, message)) {
		if (message->cmsg_level == IPPROTO_IPV6 && message->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(message), sizeof info);
			((struct sockaddr_in6 *)local)->sin6_addr = info.ipi6_addr;
		} else if (message->cmsg_level == IPPROTO_IP && message->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(message), sizeof info);
			((struct sockaddr_in *)local)->sin_addr = info.ipi_spec_dst;
		}
	}
}

static struct engine *engine_of_tag(struct listener *listener, uint8_t tag)
{
	struct engine *engine = tag < MAX_ENGINES ? &listener->engines[tag] : NULL;

	return engine && engine->lsquic ? engine : listener->newest;
}

/* Return the engine that a datagram belongs to. */
static struct engine *engine_of(struct listener *listener, const unsigned char *datagram, size_t length)
{
	if (length <= FQ_CONNECTION_ID || !listener->service->signals)
		return listener->newest;
	if (!(datagram[0] & LONG_HEADER))
		return engine_of_tag(listener, datagram[FQ_CONNECTION_ID]);
	size_t id_length = datagram[LONG_ID - 1];
	if (LONG_ID + id_length > length)
		return listener->newest;
	uint64_t key = hash(datagram + LONG_ID, id_length);
	size_t at = key % HANDSHAKES;
	if (listener->handshakes[at].hash == key)
		return engine_of_tag(listener, listener->handshakes[at].tag);
	/* Later packets of a handshake have an id of the server. */
	struct engine *engine = id_length == FQ_CONNECTION_ID
					? engine_of_tag(listener, datagram[LONG_ID + FQ_CONNECTION_ID - 1])
					: listener->newest;
	listener->handshakes[at].hash = key;
	listener->handshakes[at].tag = engine->tag;
	return engine;
}

void listener_receive(struct listener *listener)
{
	int count;

	do {
		for (unsigned i = 0; i < BATCH; i++) {
			listener->messages[i].msg_hdr.msg_namelen = sizeof listener->peers[i];
			listener->messages[i].msg_hdr.msg_controllen = sizeof listener->control[i];
		}
		count = recvmmsg(listener->outlet.descriptor, listener->messages, BATCH, 0, NULL);
		for (int i = 0; i < count; i++) {
			const unsigned char *datagram = listener->datagrams[i];
			size_t length = listener->messages[i].msg_len;
			struct sockaddr_storage local;
			local_address(listener, &listener->messages[i].msg_hdr, &local);
			lsquic_engine_packet_in(engine_of(listener, datagram, length)->lsquic, datagram, length,
						(struct sockaddr *)&local, (struct sockaddr *)&listener->peers[i],
						&listener->outlet, 0);
		}
	} while (count == BATCH);
}

void listener_process(struct listener *listener)
{
	for (struct engine *engine = listener->engines; engine < listener->engines + MAX_ENGINES; engine++) {
		if (!engine->lsquic)
			continue;
		if (listener->outlet.is_blocked && lsquic_engine_has_unsent_packets(engine->lsquic)) {
			listener->outlet.is_blocked = false;
			lsquic_engine_send_unsent_packets(engine->lsquic);
		}
		lsquic_engine_process_conns(engine->lsquic);
		if (engine != listener->newest && lsquic_engine_get_conns_count(engine->lsquic) == 0) {
			lsquic_engine_destroy(engine->lsquic);
			engine->lsquic = NULL;
		}
	}
}

int listener_timeout(struct listener *listener)
{
	int least = -1, difference;

	for (struct engine *engine = listener->engines; engine < listener->engines + MAX_ENGINES; engine++) {
		if (!engine->lsquic || !lsquic_engine_earliest_adv_tick(engine->lsquic, &difference))
			continue;
		int timeout = difference <= 0 ? 0 : (difference + 999) / 1000;
		if (least < 0 || timeout < least)
			least = timeout;
	}
	return least;
}

void listener_renew(struct listener *listener)
{
	struct engine *engine = listener->newest;

	do {
		if (++engine == listener->engines + MAX_ENGINES)
			engine = listener->engines;
		/* Connections from so many rotations ago have lost their server, because no key unseals their addresses any more. */
		if (engine == listener->newest)
			return;
	} while (engine->lsquic);
	if (start_engine(listener, engine))
		listener->newest = engine;
}

void listener_end(struct listener *listener)
{
	for (struct engine *engine = listener->engines; engine < listener->engines + MAX_ENGINES; engine++)
		if (engine->lsquic)
			lsquic_engine_cooldown(engine->lsquic);
}

unsigned listener_connections(const struct listener *listener)
{
	unsigned count = 0;

	for (const struct engine *engine = listener->engines; engine < listener->engines + MAX_ENGINES; engine++)
		if (engine->lsquic)
			count += lsquic_engine_get_conns_count(engine->lsquic);
	return count;
}
