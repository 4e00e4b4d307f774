/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of frontage-lsquic. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <frontage/quic.h>

#define MAX_LISTEN 4

struct options {
	struct sockaddr_storage listen[MAX_LISTEN];
	unsigned listen_count;
	const char *certificate;
	const char *private_key;
	const char *directory;
	const char *access_log;          /* NULL: none */
	struct sockaddr_storage metrics; /* family 0: none */
	uint64_t pace;                   /* bytes per second of each response; 0: unlimited */
	bool no_preferred_address;
	struct fq_settings signals; /* keys == NULL: none */
};

/* Parse the command line. Exit with status 2 and a message if it is invalid. */
void options_parse(struct options *options, int argc, char **argv);

socklen_t address_length(const struct sockaddr_storage *address);

#endif
