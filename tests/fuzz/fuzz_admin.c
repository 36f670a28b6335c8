/*
 * What the admin process reads: a request, and the files that keep listeners and quarantines.  What
 * is taken for either is what it says, in bounds; the file is written again as the same.
 */
#include "tests/fuzz/fuzz.h"

#include "gate/admin.h"
#include "gate/emergency_state.h"

#include <string.h>

static void check_request(struct arena *a, struct span text)
{
	struct admin_request req;
	struct err err = {0};
	enum admin_answer wrong = admin_request_read(a, text, &req, &err);

	HOLDS((wrong == ADMIN_DONE) == (err.kind == ERR_NONE));
	HOLDS(wrong == ADMIN_DONE || wrong == ANSWER_malformed || wrong == ANSWER_unknown_verb ||
	      wrong == ANSWER_bad_argument);
	HOLDS((wrong == ANSWER_malformed || wrong == ANSWER_unknown_verb) ==
	      (req.verb == VERB_COUNT));
	if (wrong)
		return;
	HOLDS(text.len <= ADMIN_REQUEST_MAX);
	if (req.verb == VERB_listener_add) {
		HOLDS(admin_arg(&req, "path")->text[0] == '/');
		HOLDS(!fuzz_has_dots(span_of(admin_arg(&req, "path")->text)));
		HOLDS(strlen(admin_arg(&req, "owner")->text) <= RUNTIME_NAME_MAX);
		HOLDS(!strpbrk(admin_arg(&req, "owner")->text, "/@ \n"));
		HOLDS(admin_arg(&req, "lifetime")->number > 0);
	}
}

static void check_state(struct span text)
{
	static struct admin_kept list[RUNTIME_MAX], again[RUNTIME_MAX];
	struct admin_state s = {.list = list}, back = {.list = again};
	struct err err = {0};
	struct buf out;

	if (admin_state_parse(text, &s, &err) < 0) {
		HOLDS(err.kind == ERR_CONFIG && s.count == 0);
		return;
	}
	for (size_t i = 0; i < s.count; i++) {
		HOLDS(runtime_is_row(&list[i].row));
		HOLDS(admin_state_find(&s, list[i].row.name) == &list[i]);
	}
	buf_init(&out, ADMIN_STATE_BYTES_MAX);
	admin_state_text(&s, &out);
	HOLDS(admin_state_parse(buf_span(&out), &back, &err) == 0);
	HOLDS(back.count == s.count && memcmp(list, again, s.count * sizeof(*list)) == 0);
	buf_fini(&out);
}

static void check_quarantines(struct span text)
{
	static struct emergency_view view, back;
	struct err err = {0};
	struct buf out;

	if (emergency_state_parse(text, &view, &err) < 0) {
		HOLDS(err.kind == ERR_CONFIG && view.owner_count == 0);
		return;
	}
	HOLDS(view.owner_count <= EMERGENCY_OWNERS);
	buf_init(&out, ADMIN_STATE_BYTES_MAX);
	emergency_state_text(&view, &out);
	HOLDS(emergency_state_parse(buf_span(&out), &back, &err) == 0);
	HOLDS(memcmp(&view, &back, sizeof(view)) == 0);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span text = fuzz_text(a, data, size);

	check_request(a, text);
	check_state(text);
	check_quarantines(text);
	arena_destroy(a);
	return 0;
}
