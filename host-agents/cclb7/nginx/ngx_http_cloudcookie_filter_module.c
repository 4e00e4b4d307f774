/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports each response's size to the CloudCookie agent, by connection: HTTP/1.1 and HTTP/2, with and without TLS.
 *
 *     cloudcookie on | off;        (http, server, location; off by default)
 *
 * A response is reported when its header is about to be sent, with its length or as one of unknown length. Its end is
 * reported when nginx is done with the request: after its last byte went to the socket, or when it is aborted.
 */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "frontage/send_cc.h"

/* Bytes of a response besides its header lines and its body. */
#define CC_STATUS_LINE 128 /* and the Date, Server, Content-* and Connection lines, which are not in the list */
#define CC_TLS_RECORD 16384
#define CC_TLS_OVERHEAD 22 /* TLS 1.3: 5 bytes of header, 1 of content type, 16 of tag */
#define CC_HTTP2_FRAME 9

typedef struct {
    ngx_flag_t enable;
} ngx_http_cloudcookie_conf_t;

typedef struct {
    ngx_connection_t *connection; /* the client's, also under HTTP/2 */
    ngx_connection_t *stream;     /* counts the sent bytes of this response */
    off_t sent_before;
    off_t estimate;
    unsigned unknown : 1;
} ngx_http_cloudcookie_ctx_t;

static ngx_int_t ngx_http_cloudcookie_init(ngx_conf_t *cf);
static void *ngx_http_cloudcookie_create_conf(ngx_conf_t *cf);
static char *ngx_http_cloudcookie_merge_conf(ngx_conf_t *cf, void *parent, void *child);

static ngx_http_output_header_filter_pt ngx_http_next_header_filter;

/* clang-format off */
static ngx_command_t ngx_http_cloudcookie_commands[] = {
    { ngx_string("cloudcookie"), NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_FLAG,
      ngx_conf_set_flag_slot, NGX_HTTP_LOC_CONF_OFFSET, offsetof(ngx_http_cloudcookie_conf_t, enable), NULL },
    ngx_null_command
};

static ngx_http_module_t ngx_http_cloudcookie_filter_module_ctx = {
    NULL,                             /* preconfiguration */
    ngx_http_cloudcookie_init,        /* postconfiguration */
    NULL,                             /* create main configuration */
    NULL,                             /* init main configuration */
    NULL,                             /* create server configuration */
    NULL,                             /* merge server configuration */
    ngx_http_cloudcookie_create_conf, /* create location configuration */
    ngx_http_cloudcookie_merge_conf   /* merge location configuration */
};

ngx_module_t ngx_http_cloudcookie_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_cloudcookie_filter_module_ctx,
    ngx_http_cloudcookie_commands,
    NGX_HTTP_MODULE,
    NULL, /* init master */
    NULL, /* init module */
    NULL, /* init process */
    NULL, /* init thread */
    NULL, /* exit thread */
    NULL, /* exit process */
    NULL, /* exit master */
    NGX_MODULE_V1_PADDING
};
/* clang-format on */

/* Return the length of the body, or -1 if it is unknown. The rules for responses without a body are those of nginx, which
 * applies them in a later filter. */
static off_t
ngx_http_cloudcookie_body(ngx_http_request_t *r)
{
    if (r->header_only || r->method == NGX_HTTP_HEAD || r->headers_out.status == NGX_HTTP_NO_CONTENT ||
        r->headers_out.status == NGX_HTTP_NOT_MODIFIED) {
        return 0;
    }
    return r->headers_out.content_length_n;
}

/* Return the length of the complete response on the wire, for a body of `body` bytes. */
static off_t
ngx_http_cloudcookie_estimate(ngx_http_request_t *r, off_t body)
{
    off_t bytes = CC_STATUS_LINE + body;
    ngx_uint_t i;
    ngx_list_part_t *part;
    ngx_table_elt_t *header;

    for (part = &r->headers_out.headers.part; part != NULL; part = part->next) {
        header = part->elts;
        for (i = 0; i < part->nelts; i++) {
            bytes += header[i].key.len + header[i].value.len + sizeof(": \r\n") - 1;
        }
    }
#if (NGX_HTTP_V2)
    if (r->stream) {
        ngx_uint_t frame = r->stream->connection->frame_size;

        bytes += CC_HTTP2_FRAME * (2 + body / (frame ? frame : CC_TLS_RECORD));
    }
#endif
#if (NGX_HTTP_SSL)
    if (r->connection->ssl) {
        bytes += CC_TLS_OVERHEAD * (1 + bytes / CC_TLS_RECORD);
    }
#endif
    return bytes;
}

static void
ngx_http_cloudcookie_end(void *data)
{
    ngx_http_cloudcookie_ctx_t *ctx = data;
    off_t sent = ctx->stream->sent - ctx->sent_before;

    if (ctx->connection->fd == (ngx_socket_t) -1) {
        return;
    }
    if (ctx->unknown) {
        (void) cc_report_unknown_end(ctx->connection->fd);
    } else {
        (void) cc_report_end(ctx->connection->fd, sent < ctx->estimate ? ctx->estimate - sent : 0);
    }
}

static ngx_int_t
ngx_http_cloudcookie_begin(ngx_http_request_t *r)
{
    off_t body = ngx_http_cloudcookie_body(r);
    ngx_http_cloudcookie_ctx_t *ctx;
    ngx_pool_cleanup_t *cleanup;
    static ngx_uint_t logged;
    int failed;

    cleanup = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_cloudcookie_ctx_t));
    if (cleanup == NULL) {
        return NGX_ERROR;
    }
    ctx = cleanup->data;
    ctx->connection = r->connection;
#if (NGX_HTTP_V2)
    if (r->stream) {
        ctx->connection = r->stream->connection->connection;
    }
#endif
    ctx->stream = r->connection;
    ctx->sent_before = r->connection->sent;
    ctx->unknown = body < 0;
    if (ctx->unknown) {
        ctx->estimate = 0;
        failed = cc_report_unknown(ctx->connection->fd);
    } else {
        ctx->estimate = ngx_http_cloudcookie_estimate(r, body);
        failed = cc_report_begin(ctx->connection->fd, ctx->estimate);
    }
    if (!failed) {
        cleanup->handler = ngx_http_cloudcookie_end;
    } else if (!logged) {
        logged = 1;
        ngx_log_error(NGX_LOG_WARN, r->connection->log, ngx_socket_errno,
                      "cloudcookie: no agent takes reports on this port; responses are served without cookies "
                      "(start: frontage-cclb7 attach --interface IF --port PORT)");
    }
    return NGX_OK;
}

static ngx_int_t
ngx_http_cloudcookie_header_filter(ngx_http_request_t *r)
{
    ngx_http_cloudcookie_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_cloudcookie_filter_module);

    if (conf->enable && r == r->main && !r->header_sent && ngx_http_cloudcookie_begin(r) != NGX_OK) {
        return NGX_ERROR;
    }
    return ngx_http_next_header_filter(r);
}

static void *
ngx_http_cloudcookie_create_conf(ngx_conf_t *cf)
{
    ngx_http_cloudcookie_conf_t *conf = ngx_palloc(cf->pool, sizeof(ngx_http_cloudcookie_conf_t));

    if (conf != NULL) {
        conf->enable = NGX_CONF_UNSET;
    }
    return conf;
}

static char *
ngx_http_cloudcookie_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_cloudcookie_conf_t *previous = parent;
    ngx_http_cloudcookie_conf_t *conf = child;

    (void) cf;
    ngx_conf_merge_value(conf->enable, previous->enable, 0);
    return NGX_CONF_OK;
}

static ngx_int_t
ngx_http_cloudcookie_init(ngx_conf_t *cf)
{
    (void) cf;
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_cloudcookie_header_filter;
    return NGX_OK;
}
