#include "proxy/metrics.h"

#include "audit/state.h"
#include "gate/base/hash.h"
#include "gate/base/shared.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PROBES    64
#define LABEL_MAX 248

struct decisions {
	_Atomic uint64_t key;   /* 0: free */
	_Atomic uint32_t ready; /* the labels are complete */
	_Atomic uint64_t number;
	char labels[LABEL_MAX];
};

/* Milliseconds; the last one is for all that took longer. */
static const uint64_t buckets[] = {1, 2, 5, 10, 25, 50, 100, 250, 1000, 5000, 30000, UINT64_MAX};
#define BUCKETS (sizeof(buckets) / sizeof(*buckets))

struct metrics {
	_Atomic uint64_t counters[METRIC_COUNT];
	_Atomic uint64_t took[BUCKETS], took_ms;
	_Atomic uint64_t other;
	struct decisions decisions[METRICS_DECISIONS_MAX];
};

static const struct {
	const char *name, *help;
} counters[] = {
#define COUNTER(id, name, help) {name, help},
#include "proxy/metrics.def"
#undef COUNTER
};

struct metrics *metrics_create(struct err *err)
{
	return shared_create(sizeof(struct metrics), -1, "the table of metrics", err);
}

/* To add nothing would still take the line of memory from the other workers. */
void metrics_add(struct metrics *m, enum metric which, uint64_t n)
{
	if (m && n)
		atomic_fetch_add(&m->counters[which], n);
}

/* Names hold no quotes, backslashes or line ends: profiles and operations have plain ones. */
static struct decisions *find(struct metrics *m, const char *labels, size_t len)
{
	struct hash hash = hash_of((struct span){labels, len});
	uint64_t key = hash_number(&hash) | 1;

	for (size_t i = 0; i < PROBES; i++) {
		struct decisions *d = &m->decisions[(key / 2 + i) % METRICS_DECISIONS_MAX];
		uint64_t old = 0;

		if (atomic_load(&d->key) == key)
			return d;
		if (atomic_compare_exchange_strong(&d->key, &old, key)) {
			memcpy(d->labels, labels, len + 1);
			atomic_store(&d->ready, 1);
			return d;
		}
		if (old == key)
			return d;
	}
	return NULL;
}

void metrics_decision(struct metrics *m, const char *profile, const char *operation,
		      const char *verdict, const char *reason)
{
	char labels[LABEL_MAX];
	struct decisions *d;
	int len;

	if (!m)
		return;
	len = snprintf(labels, sizeof(labels),
		       "profile=\"%.64s\",operation=\"%s\",verdict=\"%s\",reason=\"%s\"", profile,
		       operation, verdict, reason);
	d = len < LABEL_MAX ? find(m, labels, (size_t)len) : NULL;
	atomic_fetch_add(d ? &d->number : &m->other, 1);
}

void metrics_request(struct metrics *m, uint64_t took_ms)
{
	size_t i = 0;

	if (!m)
		return;
	while (took_ms > buckets[i])
		i++;
	atomic_fetch_add(&m->took[i], 1);
	atomic_fetch_add(&m->took_ms, took_ms);
}

static void write_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_decisions(const struct metrics *m, struct buf *out)
{
	write_head(out, "sallyport_decisions_total", "counter",
		   "Requests that were decided, by profile, operation, verdict and first reason.");
	for (size_t i = 0; i < METRICS_DECISIONS_MAX; i++) {
		const struct decisions *d = &m->decisions[i];

		if (atomic_load(&d->ready))
			buf_printf(out, "sallyport_decisions_total{%s} %llu\n", d->labels,
				   (unsigned long long)atomic_load(&d->number));
	}
	buf_printf(out,
		   "sallyport_decisions_total{profile=\"other\",operation=\"other\",verdict="
		   "\"other\",reason=\"other\"} %llu\n",
		   (unsigned long long)atomic_load(&m->other));
}

static void write_times(const struct metrics *m, struct buf *out)
{
	static const char name[] = "sallyport_request_seconds";
	unsigned long long sum = 0;

	write_head(out, name, "histogram",
		   "From a request's head to the end of its reply; not of raw streams and events.");
	for (size_t i = 0; i < BUCKETS; i++) {
		sum += atomic_load(&m->took[i]);
		if (i + 1 < BUCKETS)
			buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name,
				   (double)buckets[i] / 1000, sum);
		else
			buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n", name, sum);
	}
	buf_printf(out, "%s_sum %.3f\n%s_count %llu\n", name,
		   (double)atomic_load(&m->took_ms) / 1000, name, sum);
}

/* Names of sinks are letters, digits, - and _. */
static void write_sinks(const struct audit_state *s, struct buf *out)
{
	struct audit_sink sink;

	if (!audit_state_sink(s, 0, &sink))
		return;
	write_head(out, "sallyport_sink_sequence", "gauge",
		   "The last record that a sink of `audit ship` has acknowledged; -1: none.");
	for (size_t i = 0; audit_state_sink(s, i, &sink); i++)
		buf_printf(out, "sallyport_sink_sequence{sink=\"%s\"} %lld\n", sink.name,
			   sink.known ? (long long)sink.seq : -1);
	write_head(out, "sallyport_sink_behind", "gauge",
		   "Records of the log that the sink has not acknowledged yet.");
	for (size_t i = 0; audit_state_sink(s, i, &sink); i++)
		buf_printf(out, "sallyport_sink_behind{sink=\"%s\"} %llu\n", sink.name,
			   (unsigned long long)sink.behind);
	write_head(out, "sallyport_sink_trouble", "gauge",
		   "1 if something holds the sink up; `sallyport status` says what.");
	for (size_t i = 0; audit_state_sink(s, i, &sink); i++)
		buf_printf(out, "sallyport_sink_trouble{sink=\"%s\"} %d\n", sink.name,
			   *sink.trouble != '\0');
}

void metrics_write_audit(const struct audit_state *s, struct buf *out)
{
	enum audit_stage now = audit_state_get(s);

	if (!s)
		return;
	write_head(out, "sallyport_audit_state", "gauge", "1 for the one that the log is in.");
	for (int stage = 0; stage < AUDIT_STAGE_COUNT; stage++)
		buf_printf(out, "sallyport_audit_state{state=\"%s\"} %d\n",
			   audit_stage_name((enum audit_stage)stage),
			   (enum audit_stage)stage == now);
	write_head(out, "sallyport_alarms_total", "counter",
		   "Records that somebody should look at: log_alarm, worker_lost, clock_step, "
		   "observed_gap, "
		   "and of rejudged those about one container.");
	buf_printf(out, "sallyport_alarms_total %llu\n", (unsigned long long)audit_state_alarms(s));
	write_sinks(s, out);
}

void metrics_write(const struct metrics *m, const char *generation, bool audit_up, struct buf *out)
{
	write_head(out, "sallyport_build_info", "gauge", "Version, and which rules are in force.");
	buf_printf(out, "sallyport_build_info{version=\"%s\",generation=\"%.12s\"} 1\n",
		   SALLYPORT_VERSION, generation);
	write_head(out, "sallyport_audit_up", "gauge",
		   "1 if the log takes records; 0 refuses all that changes state.");
	buf_printf(out, "sallyport_audit_up %d\n", audit_up);
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		write_head(out, counters[i].name, "counter", counters[i].help);
		buf_printf(out, "%s %llu\n", counters[i].name,
			   (unsigned long long)atomic_load(&m->counters[i]));
	}
	write_decisions(m, out);
	write_times(m, out);
}
