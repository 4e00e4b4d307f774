/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The messages from a server to the CCLB7 agent: setsockopt(2) on the connection with level CC_LEVEL, name CC_OPTION and
 * a struct cc_message. The agent's cgroup/setsockopt program consumes the call in the kernel, under the socket's lock, so
 * a report takes effect before the call returns, needs no privilege, and no path or descriptor to find. Without an agent
 * the kernel returns ENOPROTOOPT, which a server can ignore.
 */
#ifndef FRONTAGE_CC_MESSAGE_H
#define FRONTAGE_CC_MESSAGE_H

#include <linux/types.h>

#define CC_LEVEL 0xcc17
#define CC_OPTION 1

enum cc_operation {
	CC_RESPONSE = 1,      /* a response of exactly `bytes` begins; it ends once they are sent */
	CC_BEGIN = 2,         /* a response of about `bytes` begins; CC_END ends it */
	CC_BEGIN_UNKNOWN = 3, /* a response of unknown length begins; CC_END_UNKNOWN ends it */
	CC_END = 4,           /* all of a response was written; `bytes` of its estimate were not needed */
	CC_END_UNKNOWN = 5,   /* all of a response of unknown length was written */
};

struct cc_message {
	__u32 operation; /* enum cc_operation */
	__u32 reserved;  /* zero */
	__u64 bytes;
};

#endif
