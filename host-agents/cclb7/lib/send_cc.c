/* SPDX-License-Identifier: Apache-2.0 */
#include "frontage/send_cc.h"

#include <sys/socket.h>

#include "frontage/cc_message.h"

static int cc_tell(int fd, enum cc_operation operation, uint64_t bytes)
{
	struct cc_message message = { .operation = operation, .bytes = bytes };

	return setsockopt(fd, CC_LEVEL, CC_OPTION, &message, sizeof(message));
}

int cc_report(int fd, uint64_t bytes)
{
	return cc_tell(fd, CC_RESPONSE, bytes);
}

int cc_report_begin(int fd, uint64_t estimated_bytes)
{
	return cc_tell(fd, CC_BEGIN, estimated_bytes);
}

int cc_report_end(int fd, uint64_t unneeded_bytes)
{
	return cc_tell(fd, CC_END, unneeded_bytes);
}

int cc_report_unknown(int fd)
{
	return cc_tell(fd, CC_BEGIN_UNKNOWN, 0);
}

int cc_report_unknown_end(int fd)
{
	return cc_tell(fd, CC_END_UNKNOWN, 0);
}

ssize_t send_cc(int fd, const void *buf, size_t len, int flags, uint64_t flow_size)
{
	if (flow_size)
		(void)cc_report(fd, flow_size); /* without an agent, serve nevertheless */
	return send(fd, buf, len, flags);
}
