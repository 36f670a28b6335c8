#include "backends/docker/networks_priv.h"

#include "gate/base/hash.h"

#include <arpa/inet.h>
#include <string.h>

struct address {
	int family;
	unsigned char bytes[16];
	size_t len;
};

/* An address of IPv4 in the clothes of IPv6 is one of IPv4. */
static void undress(struct address *a)
{
	static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};

	if (a->family != AF_INET6 || memcmp(a->bytes, prefix, sizeof(prefix)) != 0)
		return;
	memmove(a->bytes, a->bytes + 12, 4);
	a->family = AF_INET;
	a->len = 4;
}

/* "10.0.0.1", "fd00::1/64"; bits: what stands behind the slash, or all of them. */
static bool parse(const char *text, struct address *ret, unsigned *ret_bits)
{
	size_t len = strcspn(text, "/");
	char plain[INET6_ADDRSTRLEN];
	unsigned bits = 0;
	const char *at;

	if (!len || len >= sizeof(plain))
		return false;
	memcpy(plain, text, len);
	plain[len] = '\0';
	ret->family = strchr(plain, ':') ? AF_INET6 : AF_INET;
	ret->len = ret->family == AF_INET ? 4 : 16;
	if (inet_pton(ret->family, plain, ret->bytes) != 1)
		return false;
	*ret_bits = (unsigned)ret->len * 8;
	if (!text[len]) {
		undress(ret);
		*ret_bits = (unsigned)ret->len * 8;
		return true;
	}
	for (at = text + len + 1; *at >= '0' && *at <= '9' && bits < 1000; at++)
		bits = 10 * bits + (unsigned)(*at - '0');
	if (*at || at == text + len + 1 || bits > *ret_bits)
		return false;
	*ret_bits = bits;
	return true;
}

static bool is_in(const struct address *a, const char *subnet)
{
	struct address net;
	unsigned bits;

	if (!parse(subnet, &net, &bits) || net.family != a->family)
		return false;
	for (unsigned i = 0; i < bits; i++)
		if ((net.bytes[i / 8] ^ a->bytes[i / 8]) & (0x80 >> (i % 8)))
			return false;
	return true;
}

static bool same(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool docker_same_address(const char *a, const char *b)
{
	struct address one, other;
	unsigned bits;

	return parse(a, &one, &bits) && parse(b, &other, &bits) && same(&one, &other);
}

/* What a network says of the two addresses. */
struct holds {
	bool any;     /* one of them lies in a subnet of it */
	bool gateway; /* both lie in one subnet, whose gateway is our own */
};

static struct holds look_at(const struct jv *network, const struct address *peer,
			    const struct address *own)
{
	const struct jv *subnets = jv_path(network, "IPAM.Config");
	struct holds h = {.any = false};

	for (size_t i = 0; subnets && subnets->kind == JV_ARRAY && i < subnets->count; i++) {
		const char *subnet = jv_str(&subnets->items[i], "Subnet", "");
		const char *gateway = jv_str(&subnets->items[i], "Gateway", "");
		bool has_peer = is_in(peer, subnet), has_own = is_in(own, subnet);
		struct address at;
		unsigned bits;

		h.any = h.any || has_peer || has_own;
		h.gateway = h.gateway ||
			    (has_peer && has_own && parse(gateway, &at, &bits) && same(&at, own));
	}
	return h;
}

/* On a bridge of this host containers are neighbours of the gateway; elsewhere anybody may be. */
static bool is_local_bridge(const struct jv *network)
{
	return strcmp(jv_str(network, "Driver", ""), "bridge") == 0 &&
	       strcmp(jv_str(network, "Scope", "local"), "local") == 0;
}

const char *docker_network_of(const struct jv *networks, const char *peer, const char *own,
			      const char **ret_why)
{
	const char *found = NULL, *id;
	struct address from, to;
	unsigned bits;
	size_t holding = 0;

	*ret_why = "no bridge network has the gate's address as its gateway and holds the caller's";
	if (networks->kind != JV_ARRAY || !parse(peer, &from, &bits) || !parse(own, &to, &bits))
		return NULL;
	if (same(&from, &to)) {
		*ret_why = "the caller's address is the gate's own: it is the host, or a container "
			   "on its network";
		return NULL;
	}
	for (size_t i = 0; i < networks->count; i++) {
		const struct jv *one = &networks->items[i];
		struct holds h = look_at(one, &from, &to);

		holding += h.any;
		id = jv_str(one, "Id", "");
		if (h.gateway && is_local_bridge(one) && hash_is_hex(span_of(id)))
			found = id;
	}
	if (found && holding > 1) {
		*ret_why = "more than one network holds the caller's address or the gate's";
		return NULL;
	}
	return found;
}

const char *docker_container_at(const struct jv *network, const char *address)
{
	const struct jv *all = jv_get(network, "Containers");
	const char *found = NULL;

	for (size_t i = 0; all && all->kind == JV_OBJECT && i < all->count; i++) {
		const struct jv_member *m = &all->members[i];

		if (!docker_same_address(jv_str(&m->value, "IPv4Address", ""), address) &&
		    !docker_same_address(jv_str(&m->value, "IPv6Address", ""), address))
			continue;
		if (found || !hash_is_hex(m->key))
			return NULL;
		found = m->key.at;
	}
	return found;
}
