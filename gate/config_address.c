/* config_address.c - where an engine is, as the configuration writes it. */
#include "gate/config_priv.h"

#include <arpa/inet.h>
#include <string.h>

#define HOST_MAX 253 /* bytes of a name, as DNS has it */

const char *config_address_path(const char *address)
{
	static const char prefix[] = "unix://";

	return strncmp(address, prefix, sizeof(prefix) - 1) == 0 ? address + sizeof(prefix) - 1
								 : NULL;
}

static bool is_port(struct span s, unsigned *ret)
{
	uint32_t n = 0;

	if (!s.len || s.len > 5 || s.at[0] == '0')
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		n = n * 10 + (uint32_t)(s.at[i] - '0');
	}
	*ret = n;
	return n <= 65535;
}

static bool is_host_name(const char *s)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";

	return *s && *s != '.' && *s != '-' && !strstr(s, "..") && strspn(s, letters) == strlen(s);
}

/* A text of digits and dots that is no address would be looked up as who knows what. */
static bool is_host(const char *s, bool bracketed, bool *ret_loopback)
{
	static const struct in6_addr loopback6 = IN6ADDR_LOOPBACK_INIT;
	struct in6_addr v6;
	struct in_addr v4;

	*ret_loopback = false;
	if (bracketed) {
		if (inet_pton(AF_INET6, s, &v6) != 1)
			return false;
		*ret_loopback = memcmp(&v6, &loopback6, sizeof(v6)) == 0;
		return true;
	}
	if (inet_pton(AF_INET, s, &v4) == 1) {
		*ret_loopback = (ntohl(v4.s_addr) >> 24) == IN_LOOPBACKNET;
		return true;
	}
	return is_host_name(s) && strspn(s, "0123456789.") != strlen(s);
}

int config_address_tcp(const char *address, struct arena *a, struct conf_tcp *ret)
{
	static const char prefix[] = "tcp://";
	struct span rest = span_of(address), host;
	char text[HOST_MAX + 1];
	bool bracketed;

	*ret = (struct conf_tcp){0};
	if (!span_starts(rest, prefix))
		return -1;
	rest = span_skip(rest, sizeof(prefix) - 1);
	bracketed = rest.len && rest.at[0] == '[';
	if (bracketed) {
		rest = span_skip(rest, 1);
		if (!span_cut(&rest, ']', &host) || !rest.len || rest.at[0] != ':')
			return -1;
		rest = span_skip(rest, 1);
	} else if (!span_cut(&rest, ':', &host)) {
		return -1;
	}
	if (host.len > HOST_MAX || !is_port(rest, &ret->port))
		return -1;
	memcpy(text, host.at, host.len);
	text[host.len] = '\0';
	if (!is_host(text, bracketed, &ret->loopback))
		return -1;
	ret->host = a ? arena_strndup(a, text, host.len) : "";
	return 0;
}
