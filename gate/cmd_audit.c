#include "gate/command.h"

#include "audit/requests.h"
#include "audit/verify.h"
#include "gate/base/buf.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "gate/log_folder.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define TAIL_DEFAULT  10
#define KEY_FILE_MAX  4096
#define FROM_FILE_MAX (16u << 20)
#define PROGRESS_MS   500

/* "LOG;SEQ;HASH", as in the Sallyport-Audit header of a reply. */
static int parse_anchor(const char *text, struct verify_anchor *ret, struct err *err)
{
	struct span rest = span_of(text), log, seq;

	if (span_cut(&rest, ';', &log) && span_cut(&rest, ';', &seq) && log.len &&
	    command_count(seq, &ret->seq) == 0 && hash_parse(rest, &ret->hash) == 0)
		return 0;
	return err_set(err, ERR_INPUT,
		       "--receipt takes LOG;SEQ;HASH as a Sallyport-Audit header has it");
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
	char head[HASH_HEX_LEN + 1], root[HASH_HEX_LEN + 1];
	struct jv tree = jv_object();
	const struct {
		const char *key;
		uint64_t value;
	} counts[] = {
		{"records", r->records},
		{"decisions", r->decisions},
		{"allowed", r->allowed},
		{"denied", r->denied},
		{"outcomes", r->outcomes},
		{"unknown_outcomes", r->unknown_outcomes},
		{"reads", r->reads},
		{"open_decisions", r->open_decisions},
		{"first_seq", r->first_seq},
		{"last_seq", r->last_seq},
		{"bad_seq", r->bad_seq},
		{"bad_offset", r->bad_offset},
		{"checkpoints", r->checkpoints},
		{"signed_size", r->signed_size},
		{"witnessed", r->witnessed},
		{"witnessed_at", r->witnessed_s},
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
	jv_set(a, &tree, "bad_file", jv_string(r->bad_file));
	jv_set(a, &tree, "head", jv_string(head));
	hash_hex(&r->root, root);
	jv_set(a, &tree, "root", jv_string(root));
	jv_set(a, &tree, "key", jv_string(r->key));
	jv_set(a, &tree, "torn_tail", jv_bool(r->torn_tail));
	buf_init(&text, 65536);
	jv_write(&text, &tree);
	fprintf(out, "%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
	arena_destroy(a);
}

static void print_tree(const struct verify_report *r, FILE *out)
{
	char root[HASH_HEX_LEN + 1], when[CLOCK_TEXT_MAX];

	if (r->result != VERIFY_FINE)
		return;
	hash_hex(&r->root, root);
	fprintf(out, "  root               %s\n", root);
	if (!*r->key) {
		fputs("  signed             by nobody\n", out);
		return;
	}
	fprintf(out,
		"  signed             %" PRIu64 " records by %s\n"
		"  checkpoints        %" PRIu64 " on record, %" PRIu64 " in files agree\n",
		r->signed_size, r->key, r->checkpoints, r->heads_fine);
	if (r->witnessed) {
		clock_format(r->witnessed_s * 1000000000, when);
		fprintf(out, "  witnessed          %" PRIu64 " records at %.19sZ\n", r->witnessed,
			when);
	}
	if (r->heads_pruned)
		fprintf(out, "  %" PRIu64 " checkpoints are older than what is kept\n",
			r->heads_pruned);
	if (r->checkpoints && !r->has_checkpoint)
		fputs("  the file checkpoint is missing\n", out);
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
	print_tree(r, out);
	if (r->torn_tail)
		fputs("  the last line is incomplete: the gate is writing, or was killed\n", out);
	if (r->result != VERIFY_FINE)
		return;
	fputs("Each record's hash, the chain from record to record, the numbering, the tree and "
	      "its "
	      "signatures were checked.\n",
	      out);
	if (args->anchor)
		fputs("The log still holds the record that the receipt names.\n", out);
	if (args->from)
		fputs("The log has grown from the checkpoints that were given.\n", out);
	if (!args->anchor && !args->from)
		fputs("Without --from or --receipt a log that was cut at its end and whose newest "
		      "checkpoint was put back too, or that was written anew as a whole, cannot be "
		      "told from a true one.\n",
		      out);
}

/* A key, or the first line of a file with one. */
static int take_key(const char *given, struct buf *text, const char **ret, struct err *err)
{
	struct span rest, line;

	*ret = given;
	if (!given || strchr(given, '+'))
		return 0;
	if (io_read_file(given, KEY_FILE_MAX, text, err) < 0)
		return -1;
	rest = buf_span(text);
	if (!span_cut(&rest, '\n', &line) || line.len >= VERIFY_KEY_MAX)
		return err_set(err, ERR_INPUT, "%s holds no key", given);
	text->mem[line.len] = '\0';
	*ret = text->mem;
	return 0;
}

static void show_progress(void *arg, uint64_t records)
{
	uint64_t *shown_ms = arg, now = clock_boot_ms();

	if (now - *shown_ms < PROGRESS_MS)
		return;
	*shown_ms = now;
	fprintf(stderr, "\r%" PRIu64 " records", records);
	fflush(stderr);
}

struct verify_input {
	struct verify_anchor receipt;
	struct verify_options options;
	struct buf from, key;
	uint64_t shown_ms;
};

static int take_options(const struct args *args, struct verify_input *in, struct err *err)
{
	if (args->anchor && parse_anchor(args->anchor, &in->receipt, err) < 0)
		return -1;
	in->options.receipt = args->anchor ? &in->receipt : NULL;
	if (args->from) {
		if (io_read_file(args->from, FROM_FILE_MAX, &in->from, err) < 0)
			return -1;
		buf_put(&in->from, "", 1);
		in->options.from = buf_span(&in->from).at;
	}
	in->options.witness = args->witness;
	if (args->witness && !args->from)
		return err_set(err, ERR_INPUT,
			       "--witness needs --from: the file that `audit "
			       "witness` keeps");
	if (isatty(STDERR_FILENO)) {
		in->options.progress = show_progress;
		in->options.progress_arg = &in->shown_ms;
	}
	return take_key(args->key, &in->key, &in->options.key, err);
}

static enum verify_result verify(const struct args *args, struct verify_input *in, struct err *err)
{
	struct verify_report report;
	struct loaded loaded;
	const char *dir;

	if (take_options(args, in, err) < 0 || log_folder(args, &loaded, &dir, err) < 0) {
		command_failed(err);
		return VERIFY_UNREADABLE; /* 2 has another meaning here */
	}
	in->shown_ms = clock_boot_ms();
	log_tell_read(dir, "audit verify");
	verify_log(dir, &in->options, &report);
	if (in->options.progress)
		fputs("\r\033[K", stderr);
	if (args->json)
		print_json(dir, &report, stdout);
	else
		print_text(dir, args, &report, stdout);
	unload(&loaded);
	return report.result;
}

int run_audit_verify(const struct args *args)
{
	struct verify_input in = {.options = {.receipt = NULL}};
	struct err err = {0};
	int result;

	buf_init(&in.from, 1);
	buf_init(&in.key, 1);
	result = verify(args, &in, &err);
	buf_fini(&in.from);
	buf_fini(&in.key);
	return result;
}

int run_audit_tail(const struct args *args)
{
	struct loaded loaded;
	struct err err = {0};
	const char *dir;
	int rc;

	if (log_folder(args, &loaded, &dir, &err) < 0)
		return command_failed(&err);
	log_tell_read(dir, "audit tail");
	rc = log_tail(dir, args->has_count ? args->count : TAIL_DEFAULT, args->follow,
		      STDOUT_FILENO, &err);
	unload(&loaded);
	return rc < 0 ? command_failed(&err) : EXIT_YES;
}
