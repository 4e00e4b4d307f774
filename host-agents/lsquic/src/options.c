/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: frontage-lsquic --listen ADDRESS --certificate FILE --private-key FILE --directory FOLDER [OPTION]...\n"
	"Serve the files of a folder over HTTP/3 with lsquic. With --keys, packets carry the signals for a Frontage "
	"switch.\n"
	"\n"
	"  --listen ADDRESS:PORT      such as [::]:443 or 0.0.0.0:443; may be repeated\n"
	"  --certificate FILE         chain (PEM)\n"
	"  --private-key FILE         key (PEM)\n"
	"  --directory FOLDER         files to serve\n"
	"  --metrics ADDRESS:PORT     Prometheus metrics over HTTP/1.1\n"
	"  --access-log FILE          one JSON object per request\n"
	"  --pace BYTES               bytes per second of each response, for tests\n"
	"Signals (docs/quic-servers.md):\n"
	"  --keys FILE                cookie keys, as written by `frontage keys`; SIGHUP reloads them\n"
	"  --sid NUMBER               id of this server\n"
	"  --sid-v4 NUMBER            its id over IPv4, if different\n"
	"  --server-prefix ADDRESS    this server's own /64, such as 2001:db8:0:7::\n"
	"  --cookie-prefix ADDRESS    the /64 of cookie addresses\n"
	"  --port PORT                port of the service at cookie addresses, 443 by default\n"
	"  --bandwidth BITS           assumed bit/s of a connection, 1000000000 by default\n"
	"  --look-ahead BYTES         remaining bytes above which a response counts in N_FF, 64000 by default\n"
	"  --no-preferred-address     clients stay at the VIP; for those that lsquic loses otherwise, such as "
	"quic-go\n";

enum {
	LISTEN = 256,
	CERTIFICATE,
	PRIVATE_KEY,
	DIRECTORY,
	METRICS,
	ACCESS_LOG,
	PACE,
	KEYS,
	SID,
	SID_V4,
	SERVER_PREFIX,
	COOKIE_PREFIX,
	PORT,
	BANDWIDTH,
	LOOK_AHEAD,
	NO_PREFERRED_ADDRESS,
	HELP
};

static const struct option known[] = {
	{ "listen", required_argument, NULL, LISTEN },
	{ "certificate", required_argument, NULL, CERTIFICATE },
	{ "private-key", required_argument, NULL, PRIVATE_KEY },
	{ "directory", required_argument, NULL, DIRECTORY },
	{ "metrics", required_argument, NULL, METRICS },
	{ "access-log", required_argument, NULL, ACCESS_LOG },
	{ "pace", required_argument, NULL, PACE },
	{ "keys", required_argument, NULL, KEYS },
	{ "sid", required_argument, NULL, SID },
	{ "sid-v4", required_argument, NULL, SID_V4 },
	{ "server-prefix", required_argument, NULL, SERVER_PREFIX },
	{ "cookie-prefix", required_argument, NULL, COOKIE_PREFIX },
	{ "port", required_argument, NULL, PORT },
	{ "bandwidth", required_argument, NULL, BANDWIDTH },
	{ "look-ahead", required_argument, NULL, LOOK_AHEAD },
	{ "no-preferred-address", no_argument, NULL, NO_PREFERRED_ADDRESS },
	{ "help", no_argument, NULL, HELP },
	{ 0 },
};

static void fail(const char *option, const char *value, const char *wrong)
{
	fprintf(stderr, "frontage-lsquic: --%s: invalid value \"%s\": %s\n", option, value, wrong);
	exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end, reason[80];

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || value < low || value > high) {
		snprintf(reason, sizeof reason, "use a number from %llu to %llu", (unsigned long long)low,
			 (unsigned long long)high);
		fail(option, text, reason);
	}
	return value;
}

static void prefix(const char *option, const char *text, struct in6_addr *address)
{
	if (inet_pton(AF_INET6, text, address) != 1)
		fail(option, text, "use the first address of a /64, such as 2001:db8:0:7::");
}

static void socket_address(const char *option, const char *text, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE }, *found = NULL;
	char host[64];
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : sizeof host;

	if (length >= sizeof host)
		fail(option, text, "use ADDRESS:PORT, such as [::]:443");
	memcpy(host, text, length);
	host[length] = 0;
	char *start = host;
	if (length > 1 && host[0] == '[' && host[length - 1] == ']') {
		host[length - 1] = 0;
		start++;
	}
	if (getaddrinfo(start, colon + 1, &hints, &found))
		fail(option, text, "use ADDRESS:PORT, such as [::]:443");
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

socklen_t address_length(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void require(const void *value, const char *option)
{
	if (value)
		return;
	fprintf(stderr, "frontage-lsquic: missing option --%s: see --help\n", option);
	exit(2);
}

void options_parse(struct options *options, int argc, char **argv)
{
	bool has_sid = false, has_sid_v4 = false, has_server_prefix = false, has_cookie_prefix = false;
	struct fq_settings *signals = &options->signals;
	int option, index;

	*options = (struct options){ .signals = { .bandwidth = 1000000000, .look_ahead = 64000, .port = 443 } };
	while ((option = getopt_long(argc, argv, "", known, &index)) != -1) {
		switch (option) {
		case LISTEN:
			if (options->listen_count == MAX_LISTEN)
				fail("listen", optarg, "use at most four addresses");
			socket_address("listen", optarg, &options->listen[options->listen_count++]);
			break;
		case CERTIFICATE:
			options->certificate = optarg;
			break;
		case PRIVATE_KEY:
			options->private_key = optarg;
			break;
		case DIRECTORY:
			options->directory = optarg;
			break;
		case METRICS:
			socket_address("metrics", optarg, &options->metrics);
			break;
		case ACCESS_LOG:
			options->access_log = optarg;
			break;
		case PACE:
			options->pace = number("pace", optarg, 1, UINT32_MAX);
			break;
		case KEYS:
			signals->keys = optarg;
			break;
		case SID:
			signals->sid = number("sid", optarg, 0, UINT16_MAX);
			has_sid = true;
			break;
		case SID_V4:
			signals->sid_v4 = number("sid-v4", optarg, 0, UINT16_MAX);
			has_sid_v4 = true;
			break;
		case SERVER_PREFIX:
			prefix("server-prefix", optarg, &signals->server_prefix);
			has_server_prefix = true;
			break;
		case COOKIE_PREFIX:
			prefix("cookie-prefix", optarg, &signals->cookie_prefix);
			has_cookie_prefix = true;
			break;
		case PORT:
			signals->port = number("port", optarg, 1, UINT16_MAX);
			break;
		case BANDWIDTH:
			signals->bandwidth = number("bandwidth", optarg, 1, INT64_MAX);
			break;
		case LOOK_AHEAD:
			signals->look_ahead = number("look-ahead", optarg, 0, INT64_MAX);
			break;
		case NO_PREFERRED_ADDRESS:
			options->no_preferred_address = true;
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc) {
		fprintf(stderr, "frontage-lsquic: unexpected argument \"%s\": see --help\n", argv[optind]);
		exit(2);
	}
	require(options->listen_count ? options : NULL, "listen");
	require(options->certificate, "certificate");
	require(options->private_key, "private-key");
	require(options->directory, "directory");
	if (signals->keys) {
		require(has_sid ? options : NULL, "sid");
		require(has_server_prefix ? options : NULL, "server-prefix");
		require(has_cookie_prefix ? options : NULL, "cookie-prefix");
	}
	if (!has_sid_v4)
		signals->sid_v4 = signals->sid;
}
