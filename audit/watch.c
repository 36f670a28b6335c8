/* watch.c - what the auditor looks at once a second: the clock, and what others asked of it. */
#include "audit/auditor_priv.h"

#include "audit/requests_priv.h"
#include "gate/base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

#define LEAP_NS INT64_C(86400000000000)
#define STEP_NS 1000000000 /* a clock that was set by less is not told */

const char *auditor_tsync(void)
{
	struct timex now = {.modes = 0};

	return ntp_adjtime(&now) >= 0 && !(now.status & STA_UNSYNC) ? "synced" : "unsynced";
}

void auditor_watch_clock(struct auditor *a)
{
	uint64_t unix_ns = clock_unix_ns();
	int64_t offset = (int64_t)(unix_ns - clock_boot_ns()), step = offset - a->clock_offset;
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_CLOCK_STEP, .from = from, .to = to};

	if (a->clock_known && llabs(step) >= STEP_NS) {
		clock_format(unix_ns - (uint64_t)step, from);
		clock_format(unix_ns, to);
		r.tsync = auditor_tsync();
		auditor_add_own(a, &r);
		if (step >= LEAP_NS)
			auditor_prune_leap(a);
	}
	/* Small steps may add up, so the offset stays until it was told. */
	if (!a->clock_known || llabs(step) >= STEP_NS)
		a->clock_offset = offset;
	a->clock_known = true;
}

static void rotate_key(struct auditor *a)
{
	struct record r = {.type = RECORD_KEY_ROTATE},
		      alarm = {.type = RECORD_LOG_ALARM, .cause = "key"};
	char vkey[NOTE_VKEY_MAX], sig[NOTE_SIGNATURE_MAX], proof[NOTE_SIGNATURE_MAX];
	struct note_signer next;
	struct err err = {0};
	struct buf text;

	if (signing_prepare_next(&a->signing, &next, &err) == 0) {
		buf_init(&text, NOTE_CHECKPOINT_MAX);
		note_key_format(&next.key, vkey);
		signing_rotation_text(&text, a->log->writer.origin, vkey);
		note_sign(&a->signing.signer, buf_span(&text), sig);
		note_sign(&next, buf_span(&text), proof);
		buf_fini(&text);
		r.key = vkey;
		r.sig = sig;
		r.proof = proof;
		auditor_add_own(a, &r);
		auditor_commit(a);
		/* From here on the log says the new one; a crash now is mended at the start. */
		if (!auditor_sealed(a) && signing_take_next(&a->signing, &next, &err) == 0)
			memcpy(a->log->vkey, a->signing.vkey, sizeof(a->log->vkey));
	}
	note_signer_wipe(&next);
	if (err.kind != ERR_NONE) {
		alarm.text = err.msg;
		auditor_add_own(a, &alarm);
	}
}

/* Users other than root and our own may only say that they read. */
void auditor_on_request(void *arg, const struct request *request)
{
	struct auditor *a = arg;
	struct record r = {.type = RECORD_LOG_READ,
			   .has_cred = true,
			   .uid = request->uid,
			   .gid = request->gid,
			   .text = request->text};

	if (auditor_erase_ask(a, request))
		return;
	if (strcmp(request->text, REQUEST_ROTATE) != 0)
		auditor_add_own(a, &r);
	else if (request->trusted)
		rotate_key(a);
}
