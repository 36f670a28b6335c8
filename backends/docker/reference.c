#include "backends/docker/docker_priv.h"
#include "gate/base/hash.h"

#include <string.h>

#define NAME_MAX_BYTES 255

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_hex(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("0123456789abcdef", s.at[i]) || !s.at[i])
			return false;
	return s.len > 0;
}

/* [a-z0-9]+ joined by ".", "_", "__" or dashes */
static bool is_component(struct span s)
{
	size_t i = 0;

	while (i < s.len) {
		size_t start = i;

		while (i < s.len && is_lower_alnum(s.at[i]))
			i++;
		if (i == start)
			return false;
		if (i == s.len)
			return true;
		start = i;
		while (i < s.len && s.at[i] == '-')
			i++;
		if (i > start)
			continue;
		if (s.at[i] != '.' && s.at[i] != '_')
			return false;
		i += s.at[i] == '_' && i + 1 < s.len && s.at[i + 1] == '_' ? 2 : 1;
	}
	return false;
}

static bool is_path(struct span s)
{
	struct span one;
	bool more;

	do {
		more = span_cut(&s, '/', &one);
		if (!is_component(one))
			return false;
	} while (more);
	return true;
}

static bool is_domain(struct span s)
{
	struct span host, label;
	bool more, has_port = span_cut(&s, ':', &host);

	if (has_port) {
		for (size_t i = 0; i < s.len; i++)
			if (s.at[i] < '0' || s.at[i] > '9')
				return false;
		if (!s.len)
			return false;
	}
	do {
		more = span_cut(&host, '.', &label);
		if (!label.len || !is_alnum(label.at[0]) || !is_alnum(label.at[label.len - 1]))
			return false;
		for (size_t i = 0; i < label.len; i++)
			if (!is_alnum(label.at[i]) && label.at[i] != '-')
				return false;
	} while (more);
	return true;
}

static bool is_tag(struct span s)
{
	if (!s.len || s.len > 128 || s.at[0] == '.' || s.at[0] == '-')
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!is_alnum(s.at[i]) && !strchr("_.-", s.at[i]))
			return false;
	return true;
}

/* Only the algorithms that engines know. */
static bool is_digest(struct span s)
{
	struct span algorithm;

	if (!span_cut(&s, ':', &algorithm) || !is_hex(s))
		return false;
	return (span_is(algorithm, "sha256") && s.len == 64) ||
	       (span_is(algorithm, "sha512") && s.len == 128);
}

bool docker_looks_like_id(struct span given)
{
	if (span_starts(given, "sha256:"))
		return true;
	return is_hex(given);
}

/* Before the first slash stands a registry if it looks like one, else Docker Hub is meant. */
static bool names_registry(struct span head)
{
	for (size_t i = 0; i < head.len; i++)
		if (head.at[i] == '.' || head.at[i] == ':' ||
		    (head.at[i] >= 'A' && head.at[i] <= 'Z'))
			return true;
	return span_is(head, "localhost");
}

bool docker_names_registry(const char *given)
{
	size_t len = strcspn(given, "/");

	return given[len] && names_registry((struct span){given, len});
}

const char *docker_registry_of(struct backend_call *call, struct span name)
{
	struct span rest = name, head;

	if (!span_cut(&rest, '/', &head) || !names_registry(head) ||
	    span_is(head, "index.docker.io"))
		return "docker.io";
	return docker_whole(call, head);
}

static const char *full_name(struct arena *a, struct span given)
{
	struct span path = given, domain;
	bool has_slash = span_cut(&path, '/', &domain);
	const char *library = "";
	struct buf b;
	const char *ret;

	if (!has_slash || !names_registry(domain)) {
		domain = span_of("docker.io");
		path = given;
	}
	if (span_is(domain, "index.docker.io"))
		domain = span_of("docker.io");
	if (span_is(domain, "docker.io") && !memchr(path.at, '/', path.len))
		library = "library/";
	if (!is_domain(domain) || !path.len || !is_path(path))
		return NULL;
	buf_init(&b, NAME_MAX_BYTES + 32);
	buf_printf(&b, "%.*s/%s%.*s", SPAN_FMT(domain), library, SPAN_FMT(path));
	ret = arena_strndup(a, buf_span(&b).at, buf_len(&b));
	if (buf_spent(&b) || buf_len(&b) > NAME_MAX_BYTES)
		ret = NULL;
	buf_fini(&b);
	return ret;
}

/* Cuts ":tag" off *name: the last colon behind the last slash. */
static struct span take_tag(struct span *name)
{
	struct span tag = {"", 0};

	for (size_t i = name->len; i > 0 && name->at[i - 1] != '/'; i--) {
		if (name->at[i - 1] != ':')
			continue;
		tag = (struct span){name->at + i, name->len - i};
		name->len = i - 1;
		break;
	}
	return tag;
}

struct docker_reference docker_reference(struct arena *a, struct span given)
{
	struct docker_reference ret = {.tag = "", .digest = ""};
	struct span name, digest = given, tag;
	bool has_digest = span_cut(&digest, '@', &name), has_tag;
	size_t before = name.len;

	/* A NUL would end the strings below early. */
	if (given.len > 1024 || memchr(given.at, '\0', given.len) || hash_is_hex(given))
		return ret;
	tag = take_tag(&name);
	has_tag = name.len != before;
	if ((has_tag && !is_tag(tag)) || (has_digest && !is_digest(digest)))
		return ret;
	ret.name = name.len ? full_name(a, name) : NULL;
	if (has_tag)
		ret.tag = arena_strndup(a, tag.at, tag.len);
	if (has_digest)
		ret.digest = arena_strndup(a, digest.at, digest.len);
	ret.valid = ret.name && ret.tag && ret.digest;
	return ret;
}

const char *docker_reference_text(struct backend_call *call, const struct docker_reference *ref)
{
	return docker_text(call, "%s%s%s%s%s", ref->name, *ref->tag ? ":" : "", ref->tag,
			   *ref->digest ? "@" : "", ref->digest);
}
