/* References of images: what is valid is read again as itself, whoever reads it. */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/docker_priv.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct backend_call call = {.arena = a};
	struct docker_reference ref = docker_reference(a, fuzz_text(a, data, size)), again;
	const char *text;

	if (ref.valid) {
		text = docker_reference_text(&call, &ref);
		again = docker_reference(a, span_of(text));
		HOLDS(again.valid && strcmp(ref.name, again.name) == 0);
		HOLDS(strcmp(ref.tag, again.tag) == 0 && strcmp(ref.digest, again.digest) == 0);
		HOLDS(strchr(ref.name, '/') && !strchr(ref.name, '@') && *ref.name != '/');
		HOLDS(!fuzz_has_dots(span_of(ref.name)));
		HOLDS(strncmp(ref.name, "index.docker.io/", 16) != 0);
		for (const char *p = text; *p; p++)
			HOLDS((unsigned char)*p > ' ' && (unsigned char)*p < 0x7f);
	}
	arena_destroy(a);
	return 0;
}
