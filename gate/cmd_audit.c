#include "gate/command.h"

#include "audit/verify.h"
#include "gate/base/buf.h"
#include "gate/base/jv.h"
#include "gate/serve.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define TAIL_DEFAULT 10

/* The log's folder: given, or from the configuration. */
static int find_folder(const struct args *args, struct loaded *loaded, const char **ret,
		       struct err *err)
{
	*loaded = (struct loaded){.bundle = {.fd = -1}};
	if (args->rest_count && args->config)
		return err_set(err, ERR_INPUT, "give the log's folder or --config, not both");
	if (args->rest_count) {
		*ret = args->rest[0];
		return 0;
	}
	if (!args->config)
		return err_set(err, ERR_INPUT, "give the log's folder, or --config FILE");
	if (load(args->config, loaded, err) < 0)
		return -1;
	*ret = loaded->config.auditor.dir;
	return 0;
}

/* "LOG;SEQ;HASH", as in the Sallyport-Audit header of a reply. */
static int parse_anchor(const char *text, struct verify_anchor *ret, struct err *err)
{
	struct span rest = span_of(text), log, seq;

	if (span_cut(&rest, ';', &log) && span_cut(&rest, ';', &seq) && log.len &&
	    command_count(seq, &ret->seq) == 0 && hash_parse(rest, &ret->hash) == 0)
		return 0;
	return err_set(err, ERR_INPUT,
		       "--anchor takes LOG;SEQ;HASH as a Sallyport-Audit header has it");
}

static const char *result_name(enum verify_result result)
{
	switch (result) {
	case VERIFY_FINE:
		return "fine";
	case VERIFY_ALTERED:
		return "altered";
	case VERIFY_CUT:
		return "cut";
	case VERIFY_GAP:
		return "gap";
	case VERIFY_UNREADABLE:
		return "unreadable";
	}
	return "unreadable";
}

static void print_json(const char *dir, const struct verify_report *r, FILE *out)
{
	struct arena *a = arena_create(65536);
	char head[HASH_HEX_LEN + 1];
	struct jv tree = jv_object();
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{"records", r->records},     {"decisions", r->decisions},
		{"allowed", r->allowed},     {"denied", r->denied},
		{"outcomes", r->outcomes},   {"unknown_outcomes", r->unknown_outcomes},
		{"reads", r->reads},         {"open_decisions", r->open_decisions},
		{"first_seq", r->first_seq}, {"last_seq", r->last_seq},
		{"bad_seq", r->bad_seq},
	};
	struct buf text;

	if (!a)
		return;
	hash_hex(&r->head, head);
	jv_set(a, &tree, "result", jv_string(result_name(r->result)));
	jv_set(a, &tree, "what", jv_string(r->what));
	jv_set(a, &tree, "dir", jv_string(dir));
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		jv_set(a, &tree, counts[i].key, jv_int((int64_t)counts[i].value));
	jv_set(a, &tree, "head", jv_string(head));
	jv_set(a, &tree, "torn_tail", jv_bool(r->torn_tail));
	buf_init(&text, 65536);
	jv_write(&text, &tree);
	fprintf(out, "%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
	arena_destroy(a);
}

static void print_text(const char *dir, const struct args *args, const struct verify_report *r,
		       FILE *out)
{
	char head[HASH_HEX_LEN + 1];

	hash_hex(&r->head, head);
	fprintf(out, "%s: %s\n", dir, result_name(r->result));
	if (*r->what)
		fprintf(out, "  what is wrong      %s\n", r->what);
	if (!r->records && r->result == VERIFY_UNREADABLE)
		return;
	if (r->result != VERIFY_FINE && r->bad_seq)
		fprintf(out, "  first wrong record %" PRIu64 "\n", r->bad_seq);
	fprintf(out, "  records            %" PRIu64 " (%" PRIu64 " to %" PRIu64 ")\n", r->records,
		r->first_seq, r->last_seq);
	fprintf(out, "  decisions          %" PRIu64 ": %" PRIu64 " allowed, %" PRIu64 " denied\n",
		r->decisions, r->allowed, r->denied);
	fprintf(out,
		"  outcomes           %" PRIu64 ", %" PRIu64 " unknown; %" PRIu64
		" decisions are open\n",
		r->outcomes, r->unknown_outcomes, r->open_decisions);
	fprintf(out, "  reads              %" PRIu64 "\n", r->reads);
	fprintf(out, "  head               %s\n", head);
	if (r->torn_tail)
		fputs("  the last line is incomplete: the gate is writing, or was killed\n", out);
	if (r->result != VERIFY_FINE)
		return;
	fputs("Each record's hash, the chain from record to record and the numbering were "
	      "checked.\n",
	      out);
	if (args->anchor)
		fputs("The log still holds the record that the anchor names.\n", out);
	else
		fputs("Without --anchor a log that was cut at its end, or written anew as a whole, "
		      "cannot be told from a true one.\n",
		      out);
}

int run_audit_verify(const struct args *args)
{
	struct verify_anchor anchor;
	struct verify_report report;
	struct loaded loaded;
	struct err err = {0};
	const char *dir;

	if ((args->anchor && parse_anchor(args->anchor, &anchor, &err) < 0) ||
	    find_folder(args, &loaded, &dir, &err) < 0) {
		command_failed(&err);
		return VERIFY_UNREADABLE; /* 2 has another meaning here */
	}
	verify_log(dir, args->anchor ? &anchor : NULL, &report);
	if (args->json)
		print_json(dir, &report, stdout);
	else
		print_text(dir, args, &report, stdout);
	unload(&loaded);
	return report.result;
}

int run_audit_tail(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	int rc;

	if (find_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	rc = log_tail(dir, args->has_count ? args->count : TAIL_DEFAULT, args->follow,
		      STDOUT_FILENO, &err);
	unload(&loaded);
	return rc < 0 ? command_failed(&err) : EXIT_YES;
}
