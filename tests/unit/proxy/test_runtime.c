/* Listeners made at run time: how long what a worker knows of an ended one is kept. */
#include "proxy/worker_priv.h"
#include "tests/unit/check.h"

#include <string.h>

#define ENDED_MS 1000

enum whose { NOBODYS = 0, ITS_OWN, ANOTHERS };

/* An entry begins with its listener. */
static const struct conf_listener *own_of(const struct worker *w)
{
	return ((const struct listener *)w->runtime)->conf;
}

static void what_has_ended_goes_when_nobody_needs_it(void **state)
{
	static const struct conf_listener other = {.name = "other"};
	static const struct {
		const char *label;
		enum whose connection, exchange;
		bool has_exchange;
		uint64_t started_ms;
		bool kept;
	} rows[] = {
		{"nobody is there", NOBODYS, NOBODYS, false, 0, false},
		{"a connection of its own", ITS_OWN, NOBODYS, false, 0, true},
		{"with a request", ITS_OWN, ITS_OWN, true, ENDED_MS - 1, true},
		{"another's connection", ANOTHERS, NOBODYS, false, 0, false},
		{"another's old stream", ANOTHERS, ANOTHERS, true, ENDED_MS - 1, false},
		{"an old request whose connection is gone", NOBODYS, NOBODYS, true, ENDED_MS, true},
		{"a newer one", NOBODYS, NOBODYS, true, ENDED_MS + 1, false},
	};
	const struct runtime_row row = {.id = 7,
					.until = 1,
					.name = "agent",
					.profile = "main",
					.owner = "agent",
					.path = "/run/agent.sock"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct proxy_conf conf = {.backend_count = 1};
		struct worker w = {.conf = &conf, .loop = {.epfd = -1, .now_ms = ENDED_MS}};
		struct conn c = {.worker = &w, .fd = -1};
		struct exchange x = {.worker = &w, .started_ms = rows[i].started_ms};
		struct err err = {0};

		CHECK_INT(rows[i].label, 0, runtime_add(&w, &row, -1, &err));
		c.listener = rows[i].connection == ITS_OWN ? own_of(&w) : &other;
		w.conns = rows[i].connection ? &c : NULL;
		x.conn = rows[i].exchange ? &c : NULL;
		w.exchanges = rows[i].has_exchange ? &x : NULL;
		runtime_end(&w, row.id);
		runtime_tick(&w);
		CHECK_INT(rows[i].label, rows[i].kept, w.runtime != NULL);
		runtime_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_ended_goes_when_nobody_needs_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
