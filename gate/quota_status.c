#include "gate/quota_status.h"

#include "gate/printed.h"

#include <inttypes.h>

static const char *copy(struct arena *a, const char *text)
{
	const char *made = arena_strndup(a, text, strlen(text));

	return made ? made : "";
}

static void add_one(const struct quota_use *use, const struct proxy_conf *conf, struct arena *a,
		    struct jv *to)
{
	struct jv used = jv_object(), limits = jv_object();

	jv_set(a, to, "owner", jv_string(copy(a, use->owner)));
	jv_set(a, to, "profile", jv_string(copy(a, use->profile)));
	jv_set(a, to, "backend", jv_string(conf->backends[use->backend].name));
	jv_set(a, to, "at", jv_int(use->at));
	jv_set(a, to, "percent", jv_int(quota_use_percent(use)));
	for (int q = 0; q < QUOTA_COUNT; q++) {
		const char *fact = quota_fact((enum quota)q);

		if (!(use->known & 1u << q))
			continue;
		jv_set(a, &used, fact, jv_int(use->used[q] == QUOTA_ENDLESS ? -1 : use->used[q]));
		jv_set(a, &limits, fact, jv_int(use->limits[q]));
	}
	jv_set(a, to, "used", used);
	jv_set(a, to, "limits", limits);
}

void quota_status_add(const struct quota_uses *u, const struct proxy_conf *conf, struct arena *a,
		      struct jv *tree)
{
	static struct quota_use list[QUOTA_USE_SHOWN]; /* too large for a stack */
	size_t more, count = quota_uses_read(u, list, &more);
	struct jv *to = jv_set(a, tree, "quotas", jv_array());

	for (size_t i = 0; i < count; i++)
		if (list[i].backend < conf->backend_count)
			add_one(&list[i], conf, a, jv_push(a, to, jv_object()));
	jv_set(a, tree, "quotas_more", jv_int((int64_t)more));
}

/* --- for people --- */

static void put_amount(struct buf *out, enum quota_unit unit, int64_t n)
{
	if (n < 0)
		buf_puts(out, "without a limit");
	else if (unit == QUOTA_UNIT_BYTES && n >= 1 << 30)
		buf_printf(out, "%.*f GiB", n % (1 << 30) != 0, (double)n / (1 << 30));
	else if (unit == QUOTA_UNIT_BYTES)
		buf_printf(out, "%.*f MiB", n % (1 << 20) != 0, (double)n / (1 << 20));
	else if (unit == QUOTA_UNIT_CPUS)
		buf_printf(out, "%.2f", (double)n / 1e9);
	else
		buf_printf(out, "%" PRId64, n);
}

void quota_status_say(const struct jv *one, int64_t now, struct buf *out)
{
	const struct jv *used = jv_get(one, "used"), *limits = jv_get(one, "limits");
	int64_t at = jv_num(one, "at", 0);
	const char *before = ": ";

	/* Any worker can write what stands here. */
	printed_plain(out, jv_str(one, "owner", "?"), 0);
	buf_puts(out, " under ");
	printed_plain(out, jv_str(one, "profile", "?"), 0);
	buf_printf(out, " on %s", jv_str(one, "backend", "?"));
	for (int q = 0; q < QUOTA_COUNT; q++) {
		const char *fact = quota_fact((enum quota)q);

		if (!jv_get(limits, fact))
			continue;
		buf_printf(out, "%s%s ", before, quota_setting((enum quota)q));
		put_amount(out, quota_unit((enum quota)q), jv_num(used, fact, 0));
		buf_puts(out, " of ");
		put_amount(out, quota_unit((enum quota)q), jv_num(limits, fact, 0));
		before = ", ";
	}
	buf_printf(out, "; counted %" PRId64 " s ago", now > at ? now - at : 0);
}
