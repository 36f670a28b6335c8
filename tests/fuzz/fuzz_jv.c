/* JSON: what passes is written and read again as the same tree; depth and size stay in bounds. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

static size_t depth(const struct jv *v)
{
	size_t most = 0;

	for (size_t i = 0; (v->kind == JV_ARRAY || v->kind == JV_OBJECT) && i < v->count; i++) {
		const struct jv *one = v->kind == JV_ARRAY ? &v->items[i] : &v->members[i].value;
		size_t below = depth(one);

		most = below > most ? below : most;
	}
	return v->kind == JV_ARRAY || v->kind == JV_OBJECT ? most + 1 : 0;
}

static void check_keys(const struct jv *v)
{
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++) {
		HOLDS(!memchr(v->members[i].key.at, '\0', v->members[i].key.len));
		for (size_t k = 0; k < i; k++)
			HOLDS(!span_eq(v->members[i].key, v->members[k].key));
		check_keys(&v->members[i].value);
	}
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		check_keys(&v->items[i]);
}

static void check_written(struct arena *a, const struct jv *v)
{
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct buf first, second;
	struct jv again;

	buf_init(&first, 8u << 20);
	buf_init(&second, 8u << 20);
	jv_write(&first, v);
	HOLDS(!buf_spent(&first));
	for (size_t i = 0; i < buf_len(&first); i++)
		HOLDS((unsigned char)buf_span(&first).at[i] >= ' ');
	HOLDS(jv_parse(a, buf_span(&first), &again, &fault, &err) == 0);
	HOLDS(jv_equal(v, &again) && jv_equal(&again, v));
	jv_write(&second, &again);
	HOLDS(span_eq(buf_span(&first), buf_span(&second)));
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv v;

	jv_init();
	if (jv_parse(a, fuzz_text(a, data, size), &v, &fault, &err) < 0) {
		HOLDS(fault != JV_FAULT_NONE && err.kind != ERR_NONE);
	} else {
		HOLDS(depth(&v) <= JV_DEPTH_MAX);
		check_keys(&v);
		check_written(a, &v);
	}
	arena_destroy(a);
	return 0;
}
