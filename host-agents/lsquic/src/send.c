/* SPDX-License-Identifier: Apache-2.0 */
#include "send.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "http.h"

#define MAX_MESSAGES 64
/* Kernel limits for one send with segmentation (UDP_SEGMENT). */
#define MAX_SEGMENTS 64
#define MAX_BYTES 65000
#define MAX_VECTORS 1024

/* Messages for sendmmsg(2). A message holds consecutive packets of one path and size. */
struct messages {
	struct mmsghdr headers[MAX_MESSAGES];
	struct iovec vectors[MAX_VECTORS];
	unsigned char control[MAX_MESSAGES][CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
	unsigned packets[MAX_MESSAGES];
	unsigned count;
	unsigned vector_count;
};

static size_t size_of(const struct lsquic_out_spec *packet)
{
	size_t size = 0;

	for (size_t i = 0; i < packet->iovlen; i++)
		size += packet->iov[i].iov_len;
	return size;
}

static bool is_same_path(const struct lsquic_out_spec *one, const struct lsquic_out_spec *other)
{
	return one->conn_ctx == other->conn_ctx && one->conn_ctx && one->local_sa == other->local_sa &&
	       one->dest_sa == other->dest_sa;
}

/* Return how many packets from `packets` on fit into one message: all have the same size, except that the last may be shorter. */
static unsigned segments(const struct lsquic_out_spec *packets, unsigned count, size_t size)
{
	size_t bytes = size;
	unsigned n = 1;

	while (n < count && n < MAX_SEGMENTS && is_same_path(packets, &packets[n])) {
		size_t next = size_of(&packets[n]);
		if (next > size || bytes + next > MAX_BYTES)
			break;
		bytes += next;
		n++;
		if (next < size)
			break;
	}
	return n;
}

static void add_control(struct msghdr *header, int level, int type, const void *data, size_t size)
{
	struct cmsghdr *message = (struct cmsghdr *)((unsigned char *)header->msg_control + header->msg_controllen);

	*message = (struct cmsghdr){ .cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(size) };
	memcpy(CMSG_DATA(message), data, size);
	header->msg_controllen += CMSG_SPACE(size);
}

static void add_source(struct outlet *outlet, struct msghdr *header, const struct lsquic_out_spec *packet)
{
	if (outlet->family == AF_INET) {
		struct in_pktinfo info = { .ipi_spec_dst = ((const struct sockaddr_in *)packet->local_sa)->sin_addr };
		add_control(header, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
		return;
	}
	struct in6_pktinfo info = { .ipi6_addr = ((const struct sockaddr_in6 *)packet->local_sa)->sin6_addr };
	if (outlet->signals)
		fq_source(outlet->signals, http_signals(packet->conn_ctx), outlet->batch, packet->local_sa,
			  &info.ipi6_addr);
	add_control(header, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
}

/* Add a message of the first packets. Return their number, or 0 if the message does not fit. */
static unsigned add(struct outlet *outlet, struct messages *messages, const struct lsquic_out_spec *packets,
		    unsigned count)
{
	size_t size = size_of(packets);
	unsigned n = segments(packets, count, size), vectors = 0;

	for (unsigned i = 0; i < n; i++)
		vectors += packets[i].iovlen;
	if (messages->count == MAX_MESSAGES || messages->vector_count + vectors > MAX_VECTORS)
		return 0;
	struct msghdr *header = &messages->headers[messages->count].msg_hdr;
	*header = (struct msghdr){
		.msg_name = (void *)packets->dest_sa,
		.msg_namelen = outlet->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
		.msg_iov = &messages->vectors[messages->vector_count],
		.msg_iovlen = vectors,
		.msg_control = messages->control[messages->count],
	};
	add_source(outlet, header, packets);
	if (n > 1) {
		uint16_t segment = size;
		add_control(header, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
	}
	for (unsigned i = 0; i < n; i++)
		for (size_t j = 0; j < packets[i].iovlen; j++)
			messages->vectors[messages->vector_count++] = packets[i].iov[j];
	messages->packets[messages->count++] = n;
	return n;
}

int outlet_send(void *context, const struct lsquic_out_spec *packets, unsigned count)
{
	struct outlet *outlet = context;
	unsigned sent = 0;

	outlet->batch++;
	while (sent < count) {
		static struct messages messages;
		unsigned at = sent, n;

		messages.count = messages.vector_count = 0;
		while (at < count && (n = add(outlet, &messages, &packets[at], count - at)))
			at += n;
		int done = sendmmsg(outlet->descriptor, messages.headers, messages.count, 0);
		if (done <= 0) {
			if (done < 0 && errno != EAGAIN && errno != EINTR && errno != EMSGSIZE) {
				/* A packet that cannot be sent counts as lost in the network. */
				sent += messages.packets[0];
				continue;
			}
			outlet->is_blocked = errno != EMSGSIZE;
			return sent ? (int)sent
				    : -1; /* with errno, by which lsquic recognises a probe of the path MTU */
		}
		for (int i = 0; i < done; i++)
			sent += messages.packets[i];
	}
	return sent;
}
