/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus metrics over HTTP/1.1. */
#ifndef METRICS_H
#define METRICS_H

#include <sys/socket.h>

#include "http.h"

/* Return a listening socket, or -1 with errno. */
int metrics_listen(const struct sockaddr_storage *address);

/* Accept one connection, answer it, and close it. */
void metrics_answer(int socket, const struct http *http, unsigned connections);

#endif
