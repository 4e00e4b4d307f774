/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_cc: reports the sizes of a server's responses to the CloudCookie agent (CloudCookie, section IV-A).
 *
 * Every function is one system call on the connection's own descriptor, and safe without an agent: it then fails with
 * ENOPROTOOPT and changes nothing. On connections whose port no agent serves it fails likewise.
 */
#ifndef FRONTAGE_SEND_CC_H
#define FRONTAGE_SEND_CC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * send(2), the first bytes of a response of `flow_size` bytes in all; for the bytes that follow use send(2), sendfile(2) or
 * writev(2) as usual, or this function with a `flow_size` of 0. Returns what send(2) returns. A response counts from its report on:
 * when trying again after EAGAIN, pass 0.
 */
ssize_t send_cc(int fd, const void *buf, size_t len, int flags, uint64_t flow_size);

/*
 * A response of exactly `bytes` bytes begins with the next byte written. It ends once they are
 * sent; responses may be reported one after the other without waiting. Returns 0, or -1 with errno.
 */
int cc_report(int fd, uint64_t bytes);

/*
 * For servers that know approximately how long a response will be, and when it is completely written: HTTP/2 with its interleaved
 * streams, TLS with its overhead. cc_report_begin() before its first byte is written; cc_report_end() after its last was,
 * or when it is aborted, with the bytes of the estimate that were not needed. Any number may be open at a time.
 */
int cc_report_begin(int fd, uint64_t estimated_bytes);
int cc_report_end(int fd, uint64_t unneeded_bytes);

/* The same for a response of unknown length, whose priority falls as it grows. */
int cc_report_unknown(int fd);
int cc_report_unknown_end(int fd);

#ifdef __cplusplus
}
#endif

#endif
