/* summary.json: the numbers of an archive of evidence, for verify.py to find them again. */
#include "audit/evidence/evidence_priv.h"

#define ARENA_MAX ((size_t)64 << 20)

static struct jv count_of(uint64_t n)
{
	return jv_int((int64_t)n);
}

static struct jv types_tree(const struct scan *s, struct arena *a)
{
	struct jv to = jv_object();

	for (enum record_type t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++)
		if (s->types[t])
			jv_set(a, &to, record_type_name(t), count_of(s->types[t]));
	return to;
}

static struct jv period_tree(const struct scan *s, struct arena *a)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"records", s->records},
		{"first", s->first},
		{"last", s->last},
		{"torn_tails", s->torn},
		{"accepted_damage", s->damaged},
		{"unclean_ends", s->unclean},
		{"seen", s->seen},
		{"decided", s->decided},
		{"by_engine", s->by_engine},
		{"unexplained", s->unexplained},
		{"garbage", s->garbage},
		{"behind_anchor", s->behind_anchor},
	};
	struct jv to = jv_object();

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		jv_set(a, &to, counts[i].name, count_of(counts[i].value));
	jv_set(a, &to, "types", types_tree(s, a));
	return to;
}

static struct jv controls_tree(const struct scan *s, struct arena *a)
{
	struct jv to = jv_array();

	for (size_t i = 0; i < s->control_count; i++) {
		const struct control_found *c = &s->controls[i];
		struct jv *one = jv_push(a, &to, jv_object()), *samples;

		jv_set(a, one, "id", jv_string(c->control->id));
		jv_set(a, one, "title", jv_string(c->control->title));
		jv_set(a, one, "query", jv_string(c->control->query));
		jv_set(a, one, "count", count_of(c->count));
		samples = jv_set(a, one, "samples", jv_array());
		for (size_t k = 0; k < c->sample_count; k++)
			jv_push(a, samples, count_of(c->samples[k].seq));
	}
	return to;
}

static struct jv loads_tree(const struct scan *s, struct arena *a)
{
	struct jv to = jv_array();

	for (size_t i = 0; i < s->load_count; i++) {
		struct jv *one = jv_push(a, &to, jv_object());

		jv_set(a, one, "seq", count_of(s->loads[i].seq));
		jv_set(a, one, "t", jv_string(s->loads[i].time));
		jv_set(a, one, "before", jv_bool(s->loads[i].before));
		jv_set(a, one, "text", jv_string(s->loads[i].text));
	}
	return to;
}

static struct jv rules_tree(const struct evidence *e, struct arena *a)
{
	struct jv to = jv_null();
	enum jv_fault fault;
	struct err ignored;

	/* What was brought along was written by us. */
	if (e->ask->rules.len)
		(void)jv_parse(a, e->ask->rules, &to, &fault, &ignored);
	return to;
}

static void fill(const struct evidence *e, struct arena *a, struct jv *to)
{
	const struct scan *s = e->scan;
	struct jv *part;

	jv_set(a, to, "format", jv_string("sallyport-evidence 1"));
	jv_set(a, to, "made_by", jv_string("sallyport " SALLYPORT_VERSION));
	jv_set(a, to, "framework", jv_string(e->ask->framework));
	jv_set(a, to, "framework_title", jv_string(evidence_framework_title(e->ask->framework)));
	jv_set(a, to, "log", jv_string(s->log));
	jv_set(a, to, "from", jv_string(s->from));
	jv_set(a, to, "to", jv_string(s->to));
	jv_set(a, to, "seed", jv_string(e->seed));
	jv_set(a, to, "samples_each", jv_int(EVIDENCE_SAMPLES));
	part = jv_set(a, to, "checkpoint", jv_object());
	jv_set(a, part, "size", count_of(e->head->size));
	jv_set(a, part, "root", jv_string(e->root));
	part = jv_set(a, to, "archive", jv_object());
	jv_set(a, part, "first", count_of(s->all.first[s->first_segment]));
	jv_set(a, part, "end", count_of(s->archive_end));
	jv_set(a, part, "log_first", count_of(s->log_first));
	jv_set(a, part, "uncovered", count_of(s->uncovered));
	jv_set(a, to, "anchor", jv_null());
	if (s->anchor_size) {
		part = jv_set(a, to, "anchor", jv_object());
		jv_set(a, part, "size", count_of(s->anchor_size));
		jv_set(a, part, "t", jv_string(s->anchor_time));
	}
	jv_set(a, to, "period", period_tree(s, a));
	jv_set(a, to, "controls", controls_tree(s, a));
	jv_set(a, to, "loads", loads_tree(s, a));
	jv_set(a, to, "rules", rules_tree(e, a));
}

void page_summary(const struct evidence *e, struct buf *out)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct jv tree = jv_object();

	if (!a) {
		out->spent = true;
		return;
	}
	fill(e, a, &tree);
	jv_write(out, &tree);
	buf_puts(out, "\n");
	out->spent = out->spent || arena_spent(a);
	arena_destroy(a);
}
