/* The pages of an archive of evidence, as plain text. */
#include "audit/evidence/evidence_priv.h"

#include "audit/safe_priv.h"

#include <inttypes.h>
#include <string.h>

static void put_title(struct buf *out, const char *title)
{
	buf_printf(out, "%s\n", title);
	for (size_t i = 0; i < strlen(title); i++)
		buf_puts(out, "=");
	buf_puts(out, "\n\n");
}

static void put_number(struct buf *out, const char *name, uint64_t n)
{
	buf_printf(out, "  %-46s %12" PRIu64 "\n", name, n);
}

static uint64_t of_type(const struct evidence *e, enum record_type t)
{
	return e->scan->types[t];
}

static void put_period(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;

	buf_printf(out, "  %-14s %s\n  %-14s ", "framework",
		   evidence_framework_title(e->ask->framework), "log");
	safe_text(out, s->log);
	buf_printf(out,
		   "\n  %-14s %s to %s (not part of it)\n"
		   "  %-14s %" PRIu64 ", %" PRIu64 " to %" PRIu64 "\n"
		   "  %-14s %" PRIu64 " to %" PRIu64 ", in whole segments\n"
		   "  %-14s %" PRIu64 " records, root %s\n"
		   "  %-14s %s\n",
		   "period", s->from, s->to, "records", s->records, s->first, s->last, "archive",
		   s->all.first[s->first_segment], s->archive_end - 1, "checkpoint", e->head->size,
		   e->root, "signed by", s->key);
	buf_printf(out, "  %-14s ", "seed");
	safe_text(out, e->seed);
	buf_puts(out, "\n");
}

void page_readme(const struct evidence *e, struct buf *out)
{
	put_title(out, "Evidence of an audit log of Sallyport");
	put_period(e, out);
	buf_printf(
		out,
		"\nTo check it, on any machine with Python 3.8 or newer and nothing else:\n\n"
		"    python3 verify.py ARCHIVE.tar --key KEY\n\n"
		"verify.py is in this archive for convenience; who altered an archive could have\n"
		"altered it, too. Take it from a copy of sallyport that you trust\n"
		"(sallyport audit evidence --verifier). Its SHA-256, as made by this version, "
		"is\n\n"
		"    %s\n\n"
		"KEY is the log's public key. The one in this archive (keys/checkpoint.vkey) "
		"proves\n"
		"nothing of itself: compare it with what you were given when the gate was set up.\n"
		"--sums HASH is the hash of SHA256SUMS as it was printed when the archive was "
		"made\n"
		"(a gate that ran has it on record, behind this archive's end): with it, the "
		"pages\n"
		"are those that were made. With --anchor FILE, a file of checkpoints that you kept "
		"elsewhere, and "
		"--receipt,\n"
		"what a caller kept of a reply, it also finds a log that was written anew.\n\n"
		"It checks each record's hash, the chain, the numbering, the tree and its\n"
		"signatures, that the checkpoint has grown from these records, each sample's "
		"proof\n"
		"and that no other samples would have been chosen, the numbers that are given "
		"here,\n"
		"the rules against the hashes that the log has of them, and that there is nothing\n"
		"in the archive that SHA256SUMS does not list.\n\n",
		e->verifier);
	buf_puts(out, "What is in it\n\n"
		      "  index.html             all of it on one page\n"
		      "  completeness.txt       is the log whole, and what does it miss\n"
		      "  cannot-exclude.txt     what these files cannot prove\n"
		      "  controls/ID.txt        a control: what answers it, how often, samples\n"
		      "  rules.txt, rules/      the rules in force, as far as they are known\n"
		      "  access-review.*        who may do what, and did, if it was made\n"
		      "  report.txt, .html      the report of the period\n"
		      "  log/                   the segments of the period, byte by byte\n"
		      "  samples/SEQ.record     a sampled record\n"
		      "  samples/SEQ.proof      that it is in the checkpoint (C2SP tlog-proof)\n"
		      "  checkpoint, anchor     signed notes (C2SP tlog-checkpoint)\n"
		      "  keys/, proofs/         the public key, changes of it, proofs of growth\n"
		      "  summary.json           the numbers, for verify.py\n"
		      "  SHA256SUMS             the hash of each file, for sha256sum -c\n\n"
		      "Pages are views. Records are the evidence.\n\nControls\n\n");
	for (size_t i = 0; i < e->scan->control_count; i++)
		buf_printf(out, "  %-10s %12" PRIu64 "  %s\n", e->scan->controls[i].control->id,
			   e->scan->controls[i].count, e->scan->controls[i].control->title);
}

/* --- completeness --- */

static void put_list(const struct evidence *e, enum report_list_id id, struct buf *out)
{
	report_list_text(&e->report->lists[id], ", which the log has", out);
}

static void put_bounds(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;

	buf_printf(
		out,
		"The log was verified as a whole when this was made: every hash, the chain, the\n"
		"numbering, the tree and %" PRIu64 " checkpoints on record. It has the records\n"
		"%" PRIu64 " to %" PRIu64 ", %.19sZ to %.19sZ.\n",
		e->report->verify.checkpoints, s->log_first, e->head->size - 1, s->log_begin,
		s->log_end);
	if (s->log_first)
		buf_printf(out,
			   "\nRECORDS ARE MISSING AT ITS BEGINNING: 0 to %" PRIu64
			   " were removed by the log's retention,\n"
			   "which log_prune records say.%s\n",
			   s->log_first - 1,
			   strcmp(s->log_begin, s->from) > 0 ? " Some of them may be of the period."
							     : "");
	else if (strcmp(s->log_begin, s->from) > 0)
		buf_puts(out, "\nThe log began after the period did; there is nothing before.\n");
	if (s->uncovered)
		buf_printf(out,
			   "\n%" PRIu64 " records of the period are younger than the newest "
			   "checkpoint, and not here.\n",
			   s->uncovered);
	if (strcmp(s->log_end, s->to) < 0)
		buf_puts(out, "\nThe period ends behind the log's last record: what comes after it "
			      "is not here.\n");
}

void page_completeness(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;

	put_title(out, "Completeness");
	put_bounds(e, out);
	buf_puts(out, "\nIn the period\n\n");
	put_number(out, "records", s->records);
	put_number(out, "decisions and reads",
		   of_type(e, RECORD_DECISION) + of_type(e, RECORD_READ));
	put_number(out, "outcomes", of_type(e, RECORD_OUTCOME));
	put_number(out, "outcomes that nobody knows", of_type(e, RECORD_OUTCOME_UNKNOWN));
	put_number(out, "alarms of the log", of_type(e, RECORD_LOG_ALARM));
	put_number(out, "workers lost", of_type(e, RECORD_WORKER_LOST));
	put_number(out, "ends without gate_stop", s->unclean);
	put_number(out, "torn tails that were trimmed", s->torn);
	put_number(out, "times damage was accepted", s->damaged);
	put_number(out, "steps of the clock", of_type(e, RECORD_CLOCK_STEP));
	buf_puts(out, "\nHeld against what the engines told\n\n");
	put_number(out, "happenings seen", s->seen);
	put_number(out, "explained by decisions", s->decided);
	put_number(out, "the engine's own doing", s->by_engine);
	put_number(out, "unexplained", s->unexplained);
	put_number(out, "that could not be read", s->garbage);
	put_number(out, "times in which something may have been missed",
		   of_type(e, RECORD_OBSERVED_GAP));
	if (!s->seen)
		buf_puts(out,
			 "\nNothing was seen: no engine told of anything, or none was watched.\n");
	put_list(e, LIST_ALARMS, out);
	put_list(e, LIST_RECOVERIES, out);
	put_list(e, LIST_UNSEEN, out);
	put_list(e, LIST_PAST, out);
	put_list(e, LIST_UNKNOWN, out);
	put_list(e, LIST_LOST, out);
	put_list(e, LIST_CLOCKS, out);
	put_list(e, LIST_KEYS, out);
}

/* --- what cannot be excluded --- */

static void put_anchor(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;

	if (!s->anchor_size) {
		buf_printf(
			out,
			"No anchor was given, and the configuration names no file of one%s. So "
			"root on this host,\nwho has the signing key as well, could have written "
			"anew all %" PRIu64 " records, these %" PRIu64 "\namong them, and "
			"nothing in this archive would show it.\n",
			e->ask->syslog ? " (checkpoints go to syslog: look there)" : "",
			e->head->size, s->records);
		return;
	}
	buf_puts(out, "The newest checkpoint in the anchor's file ");
	safe_text(out, e->ask->anchor);
	buf_printf(out,
		   "\n(here: the file anchor) is of %" PRIu64
		   " records; the last of them was written\n%s. The log agrees with it.\n\n"
		   "As far as that file is out of reach of root on this host, nobody can have "
		   "changed,\nremoved, added or reordered one of those records since.",
		   s->anchor_size, s->anchor_time);
	if (s->anchor_size == e->head->size)
		buf_puts(out,
			 " It is the newest\ncheckpoint: no record here is behind it, where root "
			 "could have rewritten it.\n");
	else
		buf_printf(out,
			   " What root could have\nrewritten are the records behind it: %" PRIu64
			   " to %" PRIu64 ", so %" PRIu64 " of\nthe log, of which %" PRIu64
			   " of this period.\n",
			   s->anchor_size, e->head->size - 1, e->head->size - s->anchor_size,
			   s->behind_anchor);
	buf_puts(out,
		 "\nWhether the file is out of reach is not for this archive to prove: it was read "
		 "on\nthis host. Compare it with the copy on the other machine:\n"
		 "verify.py ARCHIVE.tar --anchor COPY\n");
}

void page_unsure(const struct evidence *e, struct buf *out)
{
	put_title(out, "What cannot be excluded");
	put_anchor(e, out);
	buf_puts(
		out,
		"\nNot proven by these files, with or without an anchor\n\n"
		"- That a record says what really was the case: it says what the gate saw. Who "
		"was\n"
		"  root at that time could have run another program in its place.\n"
		"- What went past the gate, but for what engines told of it (completeness.txt).\n"
		"- The newest records before a crash: up to 10 seconds or 1,000 records that no\n"
		"  checkpoint covered yet can be made to look like a torn tail. Torn tails are on\n"
		"  record, and callers hold receipts of what they were answered.\n"
		"- That the clock was right. Records are in the order in which they were written;\n"
		"  steps of the clock are on record.\n"
		"- Reads of the log by other programs than the gate's own commands.\n"
		"- That rules whose source is not here said what somebody says they did. The log\n"
		"  has the hash of each set of rules.\n");
}

/* --- rules --- */

void page_rules(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;

	put_title(out, "Rules in force");
	buf_puts(out, "As policy_load records say: the generation (a hash over configuration and "
		      "rules), each\nprofile with the first 12 digits of its hash, and for signed "
		      "bundles what their\nmanifests say of commit, author, approver and ticket. "
		      "Where none is named, the rules\ncame as plain files, and nothing but their "
		      "hash is known.\n\n");
	for (size_t i = 0; i < s->load_count; i++) {
		const struct rules_load *l = &s->loads[i];

		buf_printf(out, "record %" PRIu64 ", %s%s\n  ", l->seq, l->time,
			   l->before ? ", in force when the period began" : "");
		safe_text(out, l->text);
		buf_puts(out, "\n\n");
	}
	if (!s->load_count)
		buf_puts(out, "No record says which rules were in force.\n\n");
	if (s->loads_more)
		buf_printf(out, "And %" PRIu64 " more, which the log has.\n\n", s->loads_more);
	buf_puts(out,
		 e->ask->rules.len
			 ? "Sources in rules/ are those that the configuration loaded when "
			   "this was made, and\nthose that were given. verify.py says for each "
			   "profile that was in force whether its\nsource is here.\n"
			 : "No sources are here: the archive was made without a "
			   "configuration (--config).\n");
}

/* --- a control --- */

void page_control(const struct evidence *e, const struct control_found *c, struct buf *out)
{
	buf_printf(out,
		   "%s  %s\n%s\n\n%s\n\nRecords\n  %s\n\nIn the period: %" PRIu64
		   "\n\nThe same from the log itself\n",
		   c->control->id, c->control->title, evidence_framework_title(e->ask->framework),
		   c->control->answer, c->control->query, c->count);
	control_commands(c->control->query, e->scan->from, e->scan->to, out);
	if (!c->count) {
		buf_puts(out, "\nThere is no such record in the period.\n");
		return;
	}
	buf_printf(out, "\nSamples: %zu, by the seed ", c->sample_count);
	safe_text(out, e->seed);
	buf_puts(out, "\n(of all these records the ones whose SHA-256 over seed, control and the "
		      "record's hash\nis the lowest; --seed takes another)\n\n");
	for (size_t i = 0; i < c->sample_count; i++) {
		buf_printf(out, "  %10" PRIu64 "  %.19sZ  ", c->samples[i].seq, c->samples[i].time);
		safe_text(out, c->samples[i].what);
		buf_puts(out, "\n");
	}
	buf_puts(out, "\nEach is in samples/, with its proof.\n");
}
