/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include <stdio.h>

#include <openssl/err.h>

static const unsigned char protocols[] = "\x02h3";

static int select_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
			   unsigned offered_length, void *context)
{
	(void)ssl;
	(void)context;
	int result = SSL_select_next_proto((unsigned char **)chosen, length, protocols, sizeof protocols - 1, offered,
					   offered_length);
	return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

SSL_CTX *tls_load(const char *certificate, const char *private_key)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	const char *file = certificate;

	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_alpn_select_cb(context, select_protocol, NULL);
	if (SSL_CTX_use_certificate_chain_file(context, certificate) == 1) {
		file = private_key;
		if (SSL_CTX_use_PrivateKey_file(context, private_key, SSL_FILETYPE_PEM) == 1)
			return context;
	}
	char reason[200];
	ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
	fprintf(stderr, "frontage-lsquic: %s: invalid file: %s: use PEM files, with the key of the certificate\n", file,
		reason);
	SSL_CTX_free(context);
	return NULL;
}
