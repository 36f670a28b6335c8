#include "proxy/engines.h"

#include "gate/base/clock.h"
#include "gate/base/shared.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct one {
	_Atomic uint32_t state;
	_Atomic uint32_t api; /* major and minor, 16 bits each; 0: not known */
	_Atomic int64_t since;
	_Atomic uint32_t mounted;
	_Atomic uint64_t counters[ENGINE_COUNTER_COUNT];
	/* The last round of judging again: of one writer, and read for people. */
	_Atomic int64_t round_at;
	_Atomic uint32_t round_cause;
	_Atomic uint64_t judged, reported, stopped, unknown, left_out;
};

/* How many there are stands in memory of each process's own: nobody else can make it more. */
struct engines {
	size_t count;
	struct one *list; /* shared */
};

static const struct {
	const char *name, *text;
} states[] = {
	[ENGINE_UNKNOWN] = {"unknown", "it was not asked yet"},
	[ENGINE_UP] = {"up", "it answers"},
	[ENGINE_UNREACHABLE] = {"unreachable", "it cannot be reached"},
	[ENGINE_SILENT] = {"silent", "it takes connections and does not answer"},
	[ENGINE_ODD] = {"odd", "it does not answer as an engine does"},
};
_Static_assert(sizeof(states) / sizeof(*states) == ENGINE_STATE_COUNT, "a name each");

static const struct {
	const char *name, *help;
} counters[] = {
#define ENGINE_COUNTER(id, name, help) {name, help},
#include "proxy/engines.def"
#undef ENGINE_COUNTER
};

const char *engine_state_name(enum engine_state s)
{
	return states[s].name;
}

const char *engine_state_text(enum engine_state s)
{
	return states[s].text;
}

struct engines *engines_create(size_t count, struct err *err)
{
	struct engines *e = calloc(1, sizeof(*e));

	if (!e) {
		err_sys(err, "allocate the table of engines");
		return NULL;
	}
	e->count = count;
	e->list = shared_create((count + 1) * sizeof(struct one), -1, "the table of engines", err);
	if (e->list)
		return e;
	free(e);
	return NULL;
}

void engines_add(struct engines *e, size_t backend, enum engine_counter which, uint64_t n)
{
	if (e && n && backend < e->count)
		atomic_fetch_add(&e->list[backend].counters[which], n);
}

/* "1.41"; what is no such text is not known. */
static uint32_t packed(const char *api)
{
	char *end;
	unsigned long major = strtoul(api, &end, 10), minor;

	if (end == api || *end != '.')
		return 0;
	api = end + 1;
	minor = strtoul(api, &end, 10);
	if (end == api || *end || major > 0xffff || minor > 0xffff)
		return 0;
	return (uint32_t)(major << 16 | minor);
}

void engines_set(struct engines *e, size_t backend, enum engine_state state, const char *api)
{
	struct one *to;

	if (!e || backend >= e->count)
		return;
	to = &e->list[backend];
	if (state == ENGINE_UP)
		atomic_store(&to->api, packed(api));
	if (atomic_exchange(&to->state, (uint32_t)state) != (uint32_t)state)
		atomic_store(&to->since, (int64_t)(clock_unix_ns() / 1000000000));
}

void engines_set_mounted(struct engines *e, size_t backend)
{
	if (e && backend < e->count)
		atomic_store(&e->list[backend].mounted, 1);
}

void engines_look(const struct engines *e, size_t backend, struct engine_look *ret)
{
	uint32_t state, api;

	*ret = (struct engine_look){.state = ENGINE_UNKNOWN};
	if (!e || backend >= e->count)
		return;
	state = atomic_load(&e->list[backend].state);
	api = atomic_load(&e->list[backend].api);
	ret->state = state < ENGINE_STATE_COUNT ? (enum engine_state)state : ENGINE_UNKNOWN;
	ret->mounted = atomic_load(&e->list[backend].mounted);
	ret->since = atomic_load(&e->list[backend].since);
	if (api)
		snprintf(ret->api, sizeof(ret->api), "%u.%u", api >> 16, api & 0xffff);
}

void engines_judged(struct engines *e, size_t backend, const struct engine_round *r)
{
	struct one *to;

	if (!e || backend >= e->count)
		return;
	to = &e->list[backend];
	atomic_store(&to->round_cause, (uint32_t)r->cause);
	atomic_store(&to->judged, r->judged);
	atomic_store(&to->reported, r->reported);
	atomic_store(&to->stopped, r->stopped);
	atomic_store(&to->unknown, r->unknown);
	atomic_store(&to->left_out, r->left_out);
	atomic_store(&to->round_at, r->at);
}

void engines_round(const struct engines *e, size_t backend, struct engine_round *ret)
{
	const struct one *from;
	uint32_t cause;

	*ret = (struct engine_round){.at = 0};
	if (!e || backend >= e->count)
		return;
	from = &e->list[backend];
	ret->at = atomic_load(&from->round_at);
	cause = atomic_load(&from->round_cause);
	ret->cause = cause < CAUSE_COUNT ? (enum rejudge_cause)cause : CAUSE_START;
	ret->judged = atomic_load(&from->judged);
	ret->reported = atomic_load(&from->reported);
	ret->stopped = atomic_load(&from->stopped);
	ret->unknown = atomic_load(&from->unknown);
	ret->left_out = atomic_load(&from->left_out);
}

static void write_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void engines_write(const struct engines *e, const struct proxy_conf *conf, struct buf *out)
{
	struct engine_look look;

	if (!e)
		return;
	write_head(out, "sallyport_backend_up", "gauge",
		   "1 if it answers a simple question; see sallyport status for what is wrong.");
	for (size_t i = 0; i < conf->backend_count; i++) {
		engines_look(e, i, &look);
		buf_printf(out, "sallyport_backend_up{backend=\"%s\"} %d\n", conf->backends[i].name,
			   look.state == ENGINE_UP);
	}
	for (size_t c = 0; c < ENGINE_COUNTER_COUNT; c++) {
		write_head(out, counters[c].name, "counter", counters[c].help);
		for (size_t i = 0; i < conf->backend_count && i < e->count; i++)
			buf_printf(out, "%s{backend=\"%s\"} %llu\n", counters[c].name,
				   conf->backends[i].name,
				   (unsigned long long)atomic_load(&e->list[i].counters[c]));
	}
}
