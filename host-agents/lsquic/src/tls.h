/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS configuration. */
#ifndef TLS_H
#define TLS_H

#include <openssl/ssl.h>

/* Load certificate chain and key. Return NULL, after a message to the standard error stream, if they are invalid. */
SSL_CTX *tls_load(const char *certificate, const char *private_key);

#endif
