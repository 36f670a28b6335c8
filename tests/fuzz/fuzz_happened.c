/* A line of an engine's events: whatever it says, what is read of it is whole and bounded. */
#include "tests/fuzz/fuzz.h"

#include "backends/backend.h"

#include <string.h>

static bool is_id(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static void check(const struct happening *h)
{
	HOLDS(h->effect < EFFECT_COUNT && h->at_ns > 0);
	HOLDS(strlen(h->id) <= 255 && strlen(h->name) <= 255 && strlen(h->image) <= 255 &&
	      strlen(h->decision) <= 255);
	HOLDS((h->effect != EFFECT_NONE) <= (*h->kind != '\0' && h->op != OP_UNKNOWN));
	if (h->effect == EFFECT_START || h->effect == EFFECT_CREATE || h->life != LIFE_NONE)
		HOLDS(is_id(h->container));
	if (h->effect == EFFECT_EXEC || h->effect == EFFECT_EXEC_START)
		HOLDS(is_id(h->id) && is_id(h->container));
	if (h->effect == EFFECT_CONNECT)
		HOLDS(is_id(h->id) && is_id(h->container));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct backend *be;
	const struct backend_conf conf = {.name = "engine"};
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span text = fuzz_text(a, data, size);
	struct err err = {0};
	struct happening h;

	if (!be) {
		jv_init();
		be = backend_find("docker")->open(&conf, &err);
	}
	HOLDS(be != NULL);
	if (be->ops->happened(be, text, a, &h) == 0)
		check(&h);
	arena_destroy(a);
	return 0;
}
