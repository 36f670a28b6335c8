/* What a process can write into its own /proc: names, paths, groups.  Nothing is read over its end.
 */
#include "tests/fuzz/fuzz.h"

#include "proxy/cgroup.h"
#include "proxy/procfs.h"

#include <string.h>

static bool lies_in(struct span inner, struct span outer)
{
	return !inner.len || (inner.at >= outer.at && inner.at + inner.len <= outer.at + outer.len);
}

static void check_mounts(struct span text)
{
	struct span rest = text;
	struct procfs_mount m;
	unsigned bad = 0;
	size_t left = rest.len + 1;
	char path[64];

	while (procfs_mount(&rest, &m, &bad)) {
		HOLDS(rest.len < left);
		left = rest.len;
		HOLDS(m.id >= 0 && m.parent >= 0 && m.propagation);
		HOLDS(m.point.len && m.root.len && m.type.len);
		HOLDS(lies_in(m.point, text) && lies_in(m.super, text) && lies_in(m.source, text));
		if (procfs_unescape(m.point, path, sizeof(path)))
			HOLDS(strlen(path) <= m.point.len && strlen(path) < sizeof(path));
	}
	HOLDS(!rest.len);
}

static void check_containers(struct span text)
{
	struct cgroup_ids ids;
	enum cgroup_place place = cgroup_containers(text, &ids);

	HOLDS(ids.count <= CGROUP_IDS_MAX);
	HOLDS((place == CGROUP_INSIDE) <= (ids.count > 0));
	for (size_t i = 0; i < ids.count; i++)
		HOLDS(ids.id[i].len == CGROUP_ID_LEN && lies_in(ids.id[i], text));
	/* Whoever is inside is within its own groups, and not within those of an empty text. */
	for (size_t i = 0; place == CGROUP_INSIDE && i < ids.count; i++) {
		cgroup_within(text, text, ids.id[i]);
		HOLDS(!cgroup_within(text, (struct span){"", 0}, ids.id[i]));
		HOLDS(!cgroup_within((struct span){"", 0}, text, ids.id[i]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span text = fuzz_text(a, data, size), group;
	struct procfs_status status;
	uint64_t start;
	int64_t limit;

	if (procfs_status(text, &status))
		HOLDS(status.seccomp >= 0 && status.seccomp <= 2 && status.filters >= -1);
	procfs_start_time(text, &start);
	if (procfs_cgroup(text, "memory", &group) || procfs_cgroup(text, "", &group)) {
		HOLDS(group.len && *group.at == '/' && lies_in(group, text));
		HOLDS(!memmem(group.at, group.len, "/..", 3));
	}
	if (procfs_limit(text, &limit))
		HOLDS(limit >= PROCFS_UNLIMITED);
	check_mounts(text);
	check_containers(text);
	arena_destroy(a);
	return 0;
}
