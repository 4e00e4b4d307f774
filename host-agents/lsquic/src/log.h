/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: one JSON object per line. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct log_line {
	const char *client, *method, *authority, *path;
	unsigned status;
	uint64_t bytes;       /* of the body, accepted by lsquic */
	double time, seconds; /* of the request since 1970, and until the end of the response */
	bool is_whole;        /* lsquic has accepted the whole response */
};

void log_write(FILE *file, const struct log_line *line);

#endif
