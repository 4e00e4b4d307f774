/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

static void write_text(FILE *file, const char *name, const char *text)
{
	fprintf(file, "\"%s\":\"", name);
	for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
		if (*byte == '"' || *byte == '\\')
			fprintf(file, "\\%c", *byte);
		else if (*byte < 0x20 || *byte >= 0x7f)
			fprintf(file, "\\u%04x", *byte);
		else
			putc(*byte, file);
	}
	fputs("\",", file);
}

void log_write(FILE *file, const struct log_line *line)
{
	fprintf(file, "{\"time\":%.6f,", line->time);
	write_text(file, "client", line->client);
	write_text(file, "method", line->method);
	write_text(file, "authority", line->authority);
	write_text(file, "path", line->path);
	fprintf(file, "\"status\":%u,\"bytes\":%llu,\"seconds\":%.6f,\"whole\":%s}\n", line->status,
		(unsigned long long)line->bytes, line->seconds, line->is_whole ? "true" : "false");
	fflush(file);
}
