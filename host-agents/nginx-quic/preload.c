/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the SID to the connection ids of nginx's own HTTP/3, without a patch. Load it with LD_PRELOAD. The environment of nginx must set
 * FRONTAGE_KEYS, the path of the key file, and FRONTAGE_SID.
 *
 * nginx asks OpenSSL for the 20 random bytes of a connection id, and then writes the cookie of its socket (SO_COOKIE) over the first 8,
 * for its own eBPF program (quic_bpf, which must be off). This library returns a sealed id as the first 12 bytes, and the same 8 bytes
 * again as the cookie. The switch reads 12 bytes of the id in a packet with a short header. nginx makes no other requests of 20 bytes,
 * except for some stateless resets, whose content does not matter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <frontage/quic.h>

/* NGX_QUIC_SERVER_CID_LEN */
#define NGINX_CONNECTION_ID 20

static struct fq *server;
static const char *key_file;
static struct timespec keys_changed;
/* The first 8 bytes of the latest id, until nginx has asked for the cookie. nginx has one thread. */
static uint64_t id_head;
static bool has_id_head;

static struct timespec modified(void)
{
	struct stat status = { 0 };

	stat(key_file, &status);
	return status.st_mtim;
}

/* Runs in nginx's master before nginx replaces its environment. */
__attribute__((constructor)) static void open_server(void)
{
	const char *sid = getenv("FRONTAGE_SID");
	char error[500];

	const char *keys = getenv("FRONTAGE_KEYS");
	if (!keys || !sid || !(key_file = strdup(keys))) { /* nginx writes its title over the environment */
		fputs("frontage-nginx-quic: missing FRONTAGE_KEYS or FRONTAGE_SID: set both in nginx's environment\n",
		      stderr);
		exit(1);
	}
	/* nginx only sends from its own address, so it does not need the settings for cookie addresses. */
	struct fq_settings settings = { .keys = key_file, .bandwidth = 1, .sid = atoi(sid), .sid_v4 = atoi(sid) };
	keys_changed = modified();
	server = fq_open(&settings, error, sizeof error);
	if (!server) {
		fprintf(stderr, "frontage-nginx-quic: %s\n", error);
		exit(1);
	}
}

/* Reload the keys if the file has changed. */
static void refresh(void)
{
	struct timespec now = modified();
	char error[500];

	if (now.tv_sec == keys_changed.tv_sec && now.tv_nsec == keys_changed.tv_nsec)
		return;
	keys_changed = now;
	if (fq_reload(server, error, sizeof error))
		fprintf(stderr, "frontage-nginx-quic: the previous keys remain in use: %s\n", error);
}

__attribute__((visibility("default"))) int RAND_bytes(unsigned char *bytes, int count)
{
	static int (*next)(unsigned char *, int);

	if (!next)
		next = (int (*)(unsigned char *, int))dlsym(RTLD_NEXT, "RAND_bytes");
	int result = next(bytes, count);
	if (result == 1 && count == NGINX_CONNECTION_ID && server) {
		refresh();
		fq_connection_id(server, AF_INET6, bytes);
		memcpy(&id_head, bytes, sizeof id_head);
		has_id_head = true;
	}
	return result;
}

__attribute__((visibility("default"))) int getsockopt(int socket, int level, int name, void *value, socklen_t *length)
{
	static int (*next)(int, int, int, void *, socklen_t *);

	if (level == SOL_SOCKET && name == SO_COOKIE && has_id_head && *length == sizeof id_head) {
		uint64_t cookie = be64toh(id_head); /* nginx writes it in network byte order */
		memcpy(value, &cookie, sizeof cookie);
		has_id_head = false;
		return 0;
	}
	if (!next)
		next = (int (*)(int, int, int, void *, socklen_t *))dlsym(RTLD_NEXT, "getsockopt");
	return next(socket, level, name, value, length);
}
