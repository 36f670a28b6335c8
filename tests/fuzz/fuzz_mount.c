/* Sources of mounts: cleaned, they hold no way back; a bind in short form is taken apart once. */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/docker_priv.h"

#include <string.h>

static void check_path(struct backend_call *call, struct span given)
{
	const char *clean = docker_clean_path(call, given);

	HOLDS(*clean == '/' && !fuzz_has_dots(span_of(clean)));
	HOLDS(strlen(clean) <= given.len + 1);
	HOLDS(strcmp(clean, docker_clean_path(call, span_of(clean))) == 0);
	HOLDS(docker_path_within("/", clean) && docker_path_within(clean, clean));
	HOLDS(docker_path_is_root(clean) || strcmp(clean, "/") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct backend_call call = {.arena = a};
	struct span text = fuzz_text(a, data, size);
	struct docker_bind b = docker_bind(text);

	if (!memchr(text.at, '\0', text.len))
		check_path(&call, text);
	if (b.valid) {
		HOLDS(b.target.len && b.target.at[0] == '/');
		HOLDS(b.is_path == (b.source.len && b.source.at[0] == '/'));
		HOLDS(b.source.len + b.target.len + b.mode.len + 2 >= text.len);
		HOLDS(!memchr(b.source.at, ':', b.source.len));
		HOLDS(!memchr(b.mode.at, ':', b.mode.len));
	}
	arena_destroy(a);
	return 0;
}
