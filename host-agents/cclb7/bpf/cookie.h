/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The dynamic form of the TCP cookie (docs/cookie.md). */
#pragma once

#include "responses.h"

#define MANTISSA_BITS 2
#define COUNT_MAX 31
#define RPT_MAX 63
#define COARSE_SHIFT 10

static __always_inline __u32 quantise(__u64 value, __u32 largest_code)
{
	__u32 v = value, log2 = 0, exponent, code;

	if (value < 1 << MANTISSA_BITS)
		return value;
	if (value >> 20)
		return largest_code;
	if (v >> 16) {
		v >>= 16;
		log2 += 16;
	}
	if (v >> 8) {
		v >>= 8;
		log2 += 8;
	}
	if (v >> 4) {
		v >>= 4;
		log2 += 4;
	}
	if (v >> 2) {
		v >>= 2;
		log2 += 2;
	}
	log2 += v >> 1;
	exponent = log2 - MANTISSA_BITS;
	code = ((exponent + 1) << MANTISSA_BITS) + (((__u32)value >> exponent) & ((1 << MANTISSA_BITS) - 1));
	return code < largest_code ? code : largest_code;
}

static __always_inline __u32 dynamic_cookie(__u32 ts, __u64 rpt, const struct server *server)
{
	return (ts >> COARSE_SHIFT) << 16 | quantise(rpt, RPT_MAX) << 10 | quantise(server->n_af, COUNT_MAX) << 5 |
	       quantise(server->n_ff, COUNT_MAX);
}
