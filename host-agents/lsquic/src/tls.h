/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS configuration. */
#ifndef TLS_H
#define TLS_H

#include <openssl/ssl.h>

/* Load certificate chain and key. If they are invalid, write a message to standard error and return NULL. */
SSL_CTX *tls_load(const char *certificate, const char *private_key);

#endif
