/* `audit evidence`: one archive that an auditor checks without this host. */
#include "gate/command.h"

#include "audit/evidence/evidence.h"
#include "audit/requests.h"
#include "audit/when.h"
#include "gate/access_review.h"
#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/evidence_rules.h"
#include "gate/serve.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)256 << 20)
#define TOLD_MAX  200 /* bytes of what is told to the auditor */

struct making {
	const struct args *args;
	struct evidence_ask ask;
	struct evidence_made made;
	struct loaded loaded;
	struct engine *engine; /* of the configuration's rules; NULL without */
	struct evidence_rules *rules;
	struct buf rules_text;
	struct buf review[3];
};

static int take_period(struct making *m, struct err *err)
{
	uint64_t now = clock_unix_ns();

	m->ask.to_ns = now;
	if (!m->args->framework)
		return err_set(err, ERR_INPUT, "say for what: --for pci, soc2 or iso27001");
	if (!m->args->since)
		return err_set(err, ERR_INPUT, "say the period's begin: --from 2026-01-01");
	if (evidence_framework(m->args->framework, err) < 0)
		return -1;
	if (when_parse(m->args->since, now, &m->ask.from_ns, err) < 0)
		return err_wrap(err, "--from");
	if (m->args->until && when_parse(m->args->until, now, &m->ask.to_ns, err) < 0)
		return err_wrap(err, "--to");
	return m->ask.from_ns < m->ask.to_ns
		       ? 0
		       : err_set(err, ERR_INPUT, "the period ends before it begins");
}

static int take_log(struct making *m, struct err *err)
{
	const struct auditor_conf *c = &m->loaded.config.auditor;

	if (!m->args->rest_count && !m->args->config)
		return err_set(err, ERR_INPUT, "give the log's folder, or --config FILE");
	if (m->args->config && load(m->args->config, &m->loaded, err) < 0)
		return -1;
	m->ask.dir = m->args->rest_count ? m->args->rest[0] : c->dir;
	m->ask.framework = m->args->framework;
	m->ask.seed = m->args->seed;
	m->ask.anchor = m->args->anchor ? m->args->anchor : c->anchor_file;
	m->ask.syslog = c->anchor_syslog;
	return 0;
}

/* --- what is brought along --- */

static int add_review(struct making *m, struct err *err)
{
	static const struct {
		const char *path;
		void (*write)(const struct access_review *r, struct buf *out);
	} forms[] = {{"access-review.txt", access_review_text},
		     {"access-review.csv", access_review_csv},
		     {"access-review.json", access_review_json}};
	struct access_review r = {
		.arena = m->rules->arena, .from_ns = m->ask.from_ns, .to_ns = m->ask.to_ns};

	if (access_review_make(&r, &m->loaded.config, m->engine, m->ask.dir, err) < 0)
		return -1;
	for (size_t i = 0; i < 3; i++) {
		forms[i].write(&r, &m->review[i]);
		if (buf_spent(&m->review[i]))
			return err_set(err, ERR_LIMIT, "the review of access is too long");
		if (evidence_rules_add_file(m->rules, forms[i].path, buf_span(&m->review[i]), err) <
		    0)
			return -1;
	}
	return 0;
}

static int add_config(struct making *m, struct err *err)
{
	const struct config *c = &m->loaded.config;

	m->engine = engine_open(c->proxy.rules, c->proxy.rule_count, &c->proxy.rule_limits, err);
	if (!m->engine || evidence_rules_add(m->rules, "in-force", m->engine, c->proxy.rules,
					     c->proxy.rule_count, err) < 0)
		return -1;
	for (size_t i = 0; c->profile_paths && c->profile_paths[i]; i++)
		if (evidence_rules_add_bundle(m->rules, c->profile_paths[i], err) < 0)
			return -1;
	return add_review(m, err);
}

static int add_rules(struct making *m, struct err *err)
{
	if (!m->args->config && !m->args->rules)
		return 0;
	if (evidence_rules_begin(m->rules, &m->loaded.config, err) < 0 ||
	    (m->args->config && add_config(m, err) < 0) ||
	    (m->args->rules && evidence_rules_add_path(m->rules, m->args->rules,
						       m->loaded.config.rule_keys, err) < 0))
		return -1;
	buf_init(&m->rules_text, ARENA_MAX);
	jv_write(&m->rules_text, &m->rules->tree);
	m->ask.files = m->rules->files;
	m->ask.file_count = m->rules->count;
	m->ask.rules = buf_span(&m->rules_text);
	return buf_spent(&m->rules_text) ? err_set(err, ERR_LIMIT, "too many profiles") : 0;
}

/* --- making it --- */

static int open_out(struct making *m, struct err *err)
{
	const char *path = m->args->out;

	if (!path) {
		m->ask.out_fd = STDOUT_FILENO;
		return isatty(STDOUT_FILENO) ? err_set(err, ERR_INPUT, "say where to: --out FILE")
					     : 0;
	}
	m->ask.out_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return m->ask.out_fd < 0 ? err_sys(err, "make %s", path) : 0;
}

/* An archive that is not whole does not stay. */
static enum evidence_answer close_out(struct making *m, enum evidence_answer answer,
				      struct err *err)
{
	if (!m->args->out)
		return answer;
	if (answer == EVIDENCE_MADE && fsync(m->ask.out_fd) < 0) {
		err_sys(err, "write %s", m->args->out);
		answer = EVIDENCE_TROUBLE;
	}
	close(m->ask.out_fd);
	if (answer != EVIDENCE_MADE)
		unlink(m->args->out);
	return answer;
}

/* So that the log knows which archives there are. */
static void tell(const struct making *m, enum evidence_answer answer)
{
	char text[TOLD_MAX];

	snprintf(text, sizeof(text), "audit evidence for %s%s%s", m->args->framework,
		 answer == EVIDENCE_MADE ? ", SHA256SUMS " : "", m->made.sums);
	log_tell_read(m->ask.dir, text);
}

static void show(const struct making *m)
{
	FILE *out = m->args->out ? stdout : stderr;

	fprintf(out,
		"%s: %" PRIu64 " records of the period in %" PRIu64 " segments, %" PRIu64
		" records sampled by the seed %s\n"
		"SHA256SUMS %s\n"
		"Whoever gets the archive should get this hash, the log's public key and verify.py "
		"(--verifier) by another way.\n",
		m->args->out ? m->args->out : "the archive", m->made.records, m->made.segments,
		m->made.samples, m->made.seed, m->made.sums);
}

static enum evidence_answer make(struct making *m, struct err *err)
{
	enum evidence_answer answer;

	m->rules->arena = arena_create(ARENA_MAX);
	if (!m->rules->arena) {
		err_set(err, ERR_LIMIT, "no memory for an archive");
		return EVIDENCE_TROUBLE;
	}
	if (take_period(m, err) < 0 || take_log(m, err) < 0 || add_rules(m, err) < 0 ||
	    open_out(m, err) < 0)
		return EVIDENCE_TROUBLE;
	answer = close_out(m, evidence_make(&m->ask, &m->made, err), err);
	tell(m, answer);
	return answer;
}

static int print_verifier(void)
{
	struct span text = evidence_verifier();
	struct err err = {0};

	return io_write_all(STDOUT_FILENO, text.at, text.len, &err) < 0 ? command_failed(&err)
									: EXIT_YES;
}

int run_audit_evidence(const struct args *args)
{
	struct making m = {.args = args,
			   .loaded = {.bundle = {.fd = -1}},
			   .rules = calloc(1, sizeof(*m.rules))};
	enum evidence_answer answer = EVIDENCE_TROUBLE;
	struct err err = {0};

	if (args->verifier) {
		free(m.rules);
		return print_verifier();
	}
	for (size_t i = 0; i < 3; i++)
		buf_init(&m.review[i], ACCESS_OUT_MAX);
	if (!m.rules)
		err_set(&err, ERR_LIMIT, "no memory for an archive");
	else
		answer = make(&m, &err);
	if (answer == EVIDENCE_MADE)
		show(&m);
	else
		command_failed(&err);
	for (size_t i = 0; i < 3; i++)
		buf_fini(&m.review[i]);
	buf_fini(&m.rules_text);
	engine_close(m.engine);
	unload(&m.loaded);
	if (m.rules)
		arena_destroy(m.rules->arena);
	free(m.rules);
	return answer == EVIDENCE_MADE      ? EXIT_YES
	       : answer == EVIDENCE_TROUBLE ? EXIT_CANNOT
					    : EXIT_NO;
}
