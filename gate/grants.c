#include "gate/grants.h"

#include <stdlib.h>
#include <string.h>

enum how {
	HOW_NONE = 0,
	HOW_OPERATION,
	HOW_IMAGE,
	HOW_LOCAL,
	HOW_MOUNT,
	HOW_PORT,
	HOW_LIMITS,
	HOW_LEVEL,
	HOW_LIST,
	HOW_LINE,
	HOW_NEVER
};

static const struct {
	enum how how;
	const char *text;
} grants[REASON_COUNT] = {
#define GRANT(reason, how, text) [REASON_##reason] = {HOW_##how, text},
#include "gate/grants.def"
#undef GRANT
};

/* A text in quotes, as Lua reads it; control bytes have been refused long before. */
static void put_quoted(struct buf *out, const char *s)
{
	buf_puts(out, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_puts(out, "\\");
		if ((unsigned char)*s >= 0x20)
			buf_put(out, s, 1);
	}
	buf_puts(out, "\"");
}

static enum grants_answer put_image(const struct jv *facts, const char *setting, struct buf *out)
{
	const struct jv *image = jv_path(facts, "workload.image");
	const char *name, *tag, *digest;

	if (!image)
		image = jv_path(facts, "workload.pull");
	name = jv_str(image, "name", "");
	tag = jv_str(image, "tag", "");
	digest = jv_str(image, "digest", "");
	if (!*name)
		return GRANTS_NOTHING;
	if (strncmp(tag, "sha256:", 7) == 0) {
		digest = tag;
		tag = "";
	}
	buf_printf(out, "%s = { \"", setting);
	buf_printf(out, "%s%s%s%s%s\" },", name, *tag ? ":" : "", tag, *digest ? "@" : "", digest);
	return GRANTS_LINE;
}

static bool is_about(const struct jv *mount, const char *field, const char *value)
{
	return strcmp(jv_str(mount, "kind", ""), "bind") == 0 &&
	       (strcmp(jv_str(mount, "field", "-"), field) == 0 ||
		strcmp(jv_str(mount, "given", "-"), value) == 0 ||
		strcmp(jv_str(mount, "source", "-"), value) == 0);
}

static enum grants_answer put_mount(const struct jv *facts, const struct jv *violation,
				    struct buf *out)
{
	const struct jv *mounts = jv_path(facts, "workload.mounts");
	const char *field = jv_str(violation, "field", ""), *value = jv_str(violation, "value", "");

	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		const struct jv *m = &mounts->items[i];
		const char *source = jv_str(m, "source", "");

		if (!is_about(m, field, value) || !*source)
			continue;
		if (strcmp(source, "/") == 0) {
			buf_puts(out, "the root of the host is never granted");
			return GRANTS_NOTHING;
		}
		buf_puts(out, "mounts = { { ");
		put_quoted(out, source);
		buf_printf(out, ", \"%s\" } },", jv_true(m, "read_only") ? "ro" : "rw");
		return GRANTS_LINE;
	}
	return GRANTS_NOTHING;
}

/* "127.0.0.1 -> 80/tcp", or "all addresses -> ..." */
static enum grants_answer put_port(const struct jv *violation, struct buf *out)
{
	struct span rest = span_of(jv_str(violation, "value", "")), address;

	span_cut(&rest, ' ', &address);
	if (!address.len || span_is(address, "all") || span_is(address, "true"))
		buf_puts(out, "ports = { \"*\" },");
	else
		buf_printf(out, "ports = { \"%.*s\" },", SPAN_FMT(address));
	return GRANTS_LINE;
}

/*
 * The limit that was too high, as the request has it; the profile's others stay.  Without a
 * limit in the request only a profile without one passes it.
 */
static enum grants_answer put_limits(const struct jv *facts, const struct jv *violation,
				     struct buf *out)
{
	static const char *const names[][2] = {
		{"memory", "memory"}, {"nano_cpus", "cpus"}, {"pids", "pids"}};
	const struct jv *limits = jv_path(facts, "workload.limits");
	char *end;
	long long asked = strtoll(jv_str(violation, "value", ""), &end, 10);

	for (size_t i = 0; i < 3; i++) {
		const struct jv *v = jv_get(limits, names[i][0]);

		if (!v || v->kind != JV_INT || v->i <= 0 || v->i != asked)
			continue;
		if (strcmp(names[i][1], "cpus") == 0)
			buf_printf(out, "limits = { cpus = %.3g },", (double)asked / 1e9);
		else if (i == 0 && asked % (1 << 30) == 0)
			buf_printf(out, "limits = { memory = \"%lldGiB\" },", asked >> 30);
		else
			buf_printf(out, "limits = { %s = %lld },", names[i][1], asked);
		return GRANTS_LINE;
	}
	if (limits && (*end || asked > 0)) {
		buf_puts(out, *end ? "what lifts limits is never granted"
				   : "swap and /dev/shm have what the limit of memory leaves them");
		return GRANTS_NOTHING;
	}
	buf_puts(out, "limits = {},");
	return GRANTS_LINE;
}

static enum grants_answer put_level(const struct jv *facts, struct buf *out)
{
	const char *level = jv_str(jv_path(facts, "workload.isolation"), "level", "");

	if (!*level || strcmp(level, "none") == 0) {
		buf_puts(out, "what is held by nothing is never granted");
		return GRANTS_NOTHING;
	}
	buf_printf(out, "isolation = { min = \"%s\" },", level);
	return GRANTS_LINE;
}

static enum grants_answer put_exception(const char *rule, struct buf *out)
{
	buf_printf(out,
		   "exception { rule = \"%s\", when = { ... }, owner = \"...\", ticket = \"...\", "
		   "reason = \"...\", expires = \"...\" },",
		   rule);
	return GRANTS_RULE;
}

enum grants_answer grants_line(const struct jv *facts, const char *op, const struct jv *violation,
			       struct buf *out)
{
	enum reason reason = reason_find(span_of(jv_str(violation, "reason", "")));
	const char *rule = jv_str(violation, "rule", ""), *value = jv_str(violation, "value", "");
	const char *text = grants[reason].text;

	if (strcmp(rule, "operations") == 0) {
		buf_printf(out, "operations = { \"%s\" },", op);
		return GRANTS_LINE;
	}
	switch (grants[reason].how) {
	case HOW_OPERATION:
		buf_printf(out, "operations = { \"%s\" },", op);
		return GRANTS_LINE;
	case HOW_IMAGE:
		return put_image(facts, "images", out);
	case HOW_LOCAL:
		/* What the caller built is granted at once. */
		if (jv_true(jv_path(facts, "workload.image"), "mine")) {
			buf_puts(out, "own_images = true,");
			return GRANTS_LINE;
		}
		return put_image(facts, "local_images", out);
	case HOW_MOUNT:
		return put_mount(facts, violation, out);
	case HOW_PORT:
		return put_port(violation, out);
	case HOW_LIMITS:
		return put_limits(facts, violation, out);
	case HOW_LEVEL:
		return put_level(facts, out);
	case HOW_LIST:
		buf_printf(out, "%s = { ", text);
		put_quoted(out, value);
		buf_puts(out, " },");
		return *value ? GRANTS_LINE : GRANTS_NOTHING;
	case HOW_LINE:
		buf_puts(out, text);
		return GRANTS_LINE;
	case HOW_NEVER:
		buf_puts(out, text);
		return GRANTS_NOTHING;
	case HOW_NONE:
		break;
	}
	return reason == REASON_rule ? put_exception(rule, out) : GRANTS_NOTHING;
}
