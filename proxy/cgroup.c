#include "proxy/cgroup.h"

#define LINES_MAX 64 /* hierarchies; kernels have some fifteen */

/* A line of the text: "4:memory:/docker/ID". */
struct line {
	struct span hierarchy; /* "4:memory" */
	struct span path;
};

static bool is_number(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
	return s.len > 0 && s.len < 10;
}

/*
 * Seen from a control group of its own, a reader finds those of others behind
 * "/..", which can stand at the beginning alone.
 */
static bool path_is_plain(struct span path)
{
	bool climbing = true;
	struct span part;

	if (!path.len || path.at[0] != '/' || memchr(path.at, '\0', path.len))
		return false;
	path = span_skip(path, 1);
	while (path.len) {
		bool more = span_cut(&path, '/', &part);

		climbing = climbing && span_is(part, "..");
		if (!part.len || span_is(part, ".") || (!climbing && span_is(part, "..")) ||
		    (more && !path.len))
			return false;
	}
	return true;
}

/* Takes a line; false: it is none. */
static bool take_line(struct span *rest, struct line *ret)
{
	struct span line, number, controllers, whole;

	if (!span_cut(rest, '\n', &line))
		return false; /* without its end it was cut off */
	whole = line;
	if (!span_cut(&line, ':', &number) || !is_number(number) ||
	    !span_cut(&line, ':', &controllers) || !path_is_plain(line) ||
	    /* of a group that was removed; who is in it is about to end */
	    span_ends(line, " (deleted)"))
		return false;
	*ret = (struct line){{whole.at, (size_t)(line.at - whole.at) - 1}, line};
	return true;
}

static bool is_id(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!((s.at[i] >= '0' && s.at[i] <= '9') || (s.at[i] >= 'a' && s.at[i] <= 'f')))
			return false;
	return s.len == CGROUP_ID_LEN;
}

/* One part of a path; false: it is not named like a container. */
static bool id_of(struct span part, struct span *ret)
{
	static const char *const makers[] = {"docker-", "libpod-", "cri-containerd-", "crio-",
					     "box-"};
	static const char colons[] = ":cri-containerd:"; /* slice:cri-containerd:ID */
	const char *at = part.len ? memmem(part.at, part.len, colons, sizeof(colons) - 1) : NULL;

	if (at)
		part = span_skip(part, (size_t)(at - part.at) + sizeof(colons) - 1);
	for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++) {
		if (!span_starts(part, makers[i]))
			continue;
		part = span_skip(part, strlen(makers[i]));
		if (span_ends(part, ".scope"))
			part.len -= strlen(".scope");
		break;
	}
	*ret = part;
	return is_id(part);
}

/* False: more of them than anybody nests. */
static bool ids_of(struct span path, struct cgroup_ids *ret)
{
	struct span part;

	ret->count = 0;
	while (path.len) {
		struct span id;

		span_cut(&path, '/', &part);
		if (!id_of(part, &id))
			continue;
		if (ret->count == CGROUP_IDS_MAX)
			return false;
		ret->id[ret->count++] = id;
	}
	return true;
}

static bool same_ids(const struct cgroup_ids *a, const struct cgroup_ids *b)
{
	for (size_t i = 0; a->count == b->count && i < a->count; i++)
		if (!span_eq(a->id[i], b->id[i]))
			return false;
	return a->count == b->count;
}

enum cgroup_place cgroup_containers(struct span text, struct cgroup_ids *ret)
{
	struct line line;
	size_t lines = 0;

	*ret = (struct cgroup_ids){.count = 0};
	while (text.len) {
		struct cgroup_ids ids;

		if (++lines > LINES_MAX || !take_line(&text, &line) || !ids_of(line.path, &ids))
			return CGROUP_UNKNOWN;
		/* Not every hierarchy is used by an engine; those that are agree. */
		if (ids.count && ret->count && !same_ids(&ids, ret))
			return CGROUP_UNKNOWN;
		if (ids.count)
			*ret = ids;
	}
	if (!lines)
		return CGROUP_UNKNOWN;
	return ret->count ? CGROUP_INSIDE : CGROUP_OUTSIDE;
}

/* The path up to the group of that container; empty if there is none. */
static struct span group_of(struct span path, struct span id)
{
	struct span rest = path, part, found;

	while (rest.len) {
		span_cut(&rest, '/', &part);
		if (id_of(part, &found) && span_eq(found, id))
			return (struct span){path.at, (size_t)(part.at - path.at) + part.len};
	}
	return (struct span){"", 0};
}

/* The container's group in that hierarchy; empty: it has none there. */
static struct span group_in(struct span text, struct span hierarchy, struct span id)
{
	struct line line;

	while (text.len && take_line(&text, &line))
		if (span_eq(line.hierarchy, hierarchy))
			return group_of(line.path, id);
	return (struct span){"", 0};
}

/* Whether every group of the container that one is in has the other in the same. */
static bool all_shared(struct span one, struct span other, struct span id, size_t *ret_count)
{
	struct line line;

	*ret_count = 0;
	while (one.len) {
		struct span group;

		if (!take_line(&one, &line))
			return false;
		group = group_of(line.path, id);
		if (!group.len)
			continue;
		if (!span_eq(group, group_in(other, line.hierarchy, id)))
			return false;
		++*ret_count;
	}
	return true;
}

bool cgroup_within(struct span text, struct span init, struct span id)
{
	size_t count;

	return all_shared(init, text, id, &count) && all_shared(text, init, id, &count) &&
	       count > 0;
}
