#include "audit/record.h"

#include "audit/record_priv.h"
#include "gate/base/hash.h"
#include "gate/base/utf8.h"

#include <assert.h>
#include <string.h>

#define STRING_CUT  256 /* bytes that are left of a string in the last cut */
#define NESTING_MAX 3

/* How much of a record is left out because it is too long. */
enum cut {
	CUT_NONE = 0,
	CUT_FACTS,
	CUT_VIOLATIONS,
	CUT_ALL, /* all JSON texts, and the ends of strings */
	CUT_COUNT
};

#define LIT(text) ((struct span){text, sizeof(text) - 1})

struct writer {
	char *at, *end;
	char *open[NESTING_MAX]; /* where objects that are not closed yet begin */
	unsigned depth;
	bool full;
	enum cut cut;
	char lost[HASH_HEX_LEN + 1];
};

static const char *const type_names[] = {
	[RECORD_NONE] = "none",
	[RECORD_GATE_START] = "gate_start",
	[RECORD_GATE_STOP] = "gate_stop",
	[RECORD_GATE_RECOVER] = "gate_recover",
	[RECORD_LOG_OPEN] = "log_open",
	[RECORD_LOG_SEAL] = "log_seal",
	[RECORD_LOG_ALARM] = "log_alarm",
	[RECORD_POLICY_LOAD] = "policy_load",
	[RECORD_POLICY_REJECT] = "policy_reject",
	[RECORD_DECISION] = "decision",
	[RECORD_OUTCOME] = "outcome",
	[RECORD_OUTCOME_UNKNOWN] = "outcome_unknown",
	[RECORD_READ] = "read",
	[RECORD_MALFORMED] = "malformed",
	[RECORD_WORKER_LOST] = "worker_lost",
	[RECORD_CHECKPOINT] = "checkpoint",
	[RECORD_KEY_ROTATE] = "key_rotate",
	[RECORD_CLOCK_STEP] = "clock_step",
	[RECORD_LOG_READ] = "log_read",
	[RECORD_LOG_PRUNE] = "log_prune",
	[RECORD_LOG_ERASE] = "log_erase",
	[RECORD_ADOPT] = "adopt",
	[RECORD_REJUDGED] = "rejudged",
	[RECORD_ADMIN] = "admin",
	[RECORD_OBSERVED] = "observed",
	[RECORD_OBSERVED_GAP] = "observed_gap",
	[RECORD_APPROVAL] = "approval",
	[RECORD_OBSERVED_SUM] = "observed_sum",
	[RECORD_SUPPRESSED] = "suppressed",
	[RECORD_SANDBOX] = "sandbox",
};
_Static_assert(sizeof(type_names) / sizeof(*type_names) == RECORD_TYPE_COUNT, "a name each");

const char *record_type_name(enum record_type t)
{
	return (unsigned)t < RECORD_TYPE_COUNT ? type_names[t] : type_names[RECORD_NONE];
}

static inline bool fits(struct writer *w, size_t len)
{
	if ((size_t)(w->end - w->at) >= len)
		return true;
	w->full = true;
	w->end = w->at; /* what comes behind must not fit either */
	return false;
}

/* Inlined with a constant length, this is a few moves. */
static inline __attribute__((always_inline)) void put(struct writer *w, struct span s)
{
	if (!fits(w, s.len))
		return;
	memcpy(w->at, s.at, s.len);
	w->at += s.len;
}

/* Bytes that are copied as they are; the others need a look. */
static const bool plain[256] = {
	[0x20 ... '"' - 1] = true, ['"' + 1 ... '\\' - 1] = true, ['\\' + 1 ... 0x7e] = true};

static void put_hex4(struct writer *w, unsigned code)
{
	static const char hex[] = "0123456789abcdef";
	const char text[] = {
		'\\',          'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15],
		hex[code & 15]};

	put(w, (struct span){text, sizeof(text)});
}

/* U+0080 to U+009F drive terminals, U+2028 and U+2029 end lines for some readers. */
static unsigned unsafe_code(const unsigned char *s, size_t len)
{
	if (len == 1 && (s[0] < 0x20 || s[0] == 0x7f))
		return s[0];
	if (len == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return s[1];
	if (len == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9))
		return 0x2000u | (s[2] & 0x3fu);
	return 0;
}

/* Writes one character that is not plain; returns the bytes it took. */
static size_t put_special(struct writer *w, const unsigned char *s, size_t left)
{
	size_t len = utf8_len(s, left);
	unsigned code = len ? unsafe_code(s, len) : 0;

	if (s[0] == '"' || s[0] == '\\') {
		put(w, LIT("\\"));
		put(w, (struct span){(const char *)s, 1});
	} else if (code) {
		put_hex4(w, code);
	} else if (len && s[0]) {
		put(w, (struct span){(const char *)s, len});
	} else {
		put(w, LIT("\xef\xbf\xbd"));
	}
	return len ? len : 1;
}

static void put_escaped(struct writer *w, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;

	for (size_t i = 0; i < len && !w->full;) {
		size_t run = i;

		while (run < len && plain[s[run]])
			run++;
		put(w, (struct span){text + i, run - i});
		i = run;
		if (i < len)
			i += put_special(w, s + i, len - i);
	}
}

/* What is left of a string in the last cut; no character is cut in two. */
static size_t cut_len(const char *s, size_t len)
{
	size_t cut = STRING_CUT;

	if (len <= cut)
		return len;
	for (int i = 0; i < 3 && ((unsigned char)s[cut] & 0xc0) == 0x80; i++)
		cut--;
	return cut;
}

/* Most strings are plain to their end: one pass copies them. */
static void put_text(struct writer *w, const char *text)
{
	char *at = w->at;
	size_t len;

	if (w->cut == CUT_ALL) {
		put_escaped(w, text, cut_len(text, strlen(text)));
		return;
	}
	while (at < w->end && plain[(unsigned char)*text])
		*at++ = *text++;
	w->at = at;
	len = strlen(text);
	if (len)
		put_escaped(w, text, len);
}

/* `"name":"`, the value, `",`: what stands behind the last comma is dropped in the end. */
static inline __attribute__((always_inline)) void put_str(struct writer *w, struct span key,
							  const char *value, struct span tail)
{
	if (!value || !*value)
		return;
	put(w, key);
	put_text(w, value);
	put(w, tail);
}

static void put_digits(struct writer *w, bool negative, uint64_t value)
{
	char text[24], *at = text + sizeof(text);

	*--at = ',';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		*--at = '-';
	put(w, (struct span){at, (size_t)(text + sizeof(text) - at)});
}

static void put_int(struct writer *w, int64_t value)
{
	put_digits(w, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static bool has_control(struct span s)
{
	unsigned char found = 0;

	for (size_t i = 0; i < s.len; i++)
		found |= (unsigned char)((unsigned char)s.at[i] < 0x20);
	return found;
}

/* Its quotes and backslashes mean something; beyond ASCII it is like any string. */
static void put_json_text(struct writer *w, struct span s)
{
	const unsigned char *at = (const unsigned char *)s.at;

	for (size_t i = 0; i < s.len && !w->full;) {
		size_t run = i;

		while (run < s.len && at[run] < 0x7f)
			run++;
		put(w, (struct span){s.at + i, run - i});
		i = run;
		if (i < s.len)
			i += put_special(w, at + i, s.len - i);
	}
}

/* A text with raw control bytes cannot be our JSON: it is kept as a string. */
static void put_json(struct writer *w, struct span key, struct span value)
{
	if (!value.len)
		return;
	put(w, key);
	if (has_control(value)) {
		put(w, LIT("\""));
		put_escaped(w, value.at, value.len);
		put(w, LIT("\""));
	} else {
		put_json_text(w, value);
	}
	put(w, LIT(","));
}

static inline __attribute__((always_inline)) void begin(struct writer *w, struct span key)
{
	assert(w->depth < NESTING_MAX);
	w->open[w->depth++] = w->at;
	put(w, key);
}

/* The comma behind the last member becomes the end; an empty object goes altogether. */
static inline __attribute__((always_inline)) void end(struct writer *w, struct span tail)
{
	char *start = w->open[--w->depth];

	if (w->full)
		return;
	if (w->at[-1] == '{') {
		w->at = start;
		return;
	}
	w->at--;
	put(w, tail);
}

/* The hash of a JSON text that was left out, or NULL. */
static const char *lost_hash(struct writer *w, struct span text, enum cut lost_from)
{
	struct hash h;

	if (w->cut < lost_from || !text.len)
		return NULL;
	h = hash_of(text);
	hash_hex(&h, w->lost);
	return w->lost;
}

/* False: it does not fit. */
/* NOLINTNEXTLINE(readability-function-size): a few statements for each row of the table */
static bool write_members(struct writer *w, const struct record *r)
{
#define STR(name, value) put_str(w, LIT("\"" name "\":\""), value, LIT("\","));
#define ONE(name, value) put_str(w, LIT("\"" name "\":[\""), value, LIT("\"],"));
#define NUM_IF(name, present, value)                                                               \
	if (present) {                                                                             \
		put(w, LIT("\"" name "\":"));                                                      \
		put_int(w, value);                                                                 \
	}
#define UINT(name, value)                                                                          \
	if (value) {                                                                               \
		put(w, LIT("\"" name "\":"));                                                      \
		put_digits(w, false, value);                                                       \
	}
#define TRUE(name, value)                                                                          \
	if (value)                                                                                 \
		put(w, LIT("\"" name "\":true,"));
#define JSON(name, value, lost_from)                                                               \
	if (w->cut < (lost_from))                                                                  \
		put_json(w, LIT("\"" name "\":"), value);
#define BEGIN(name) begin(w, LIT("\"" name "\":{"));
#define END()       end(w, LIT("},"));
#define LIST(name)  begin(w, LIT("\"" name "\":[{"));
#define END_LIST()  end(w, LIT("}],"));
#include "audit/record.def"
	w->at--; /* the last comma */
	return !w->full;
}

/* The type is always there, so something was written. */
void record_write(struct buf *out, const struct record *r)
{
	size_t room = buf_room(out) < RECORD_BODY_MAX ? buf_room(out) : RECORD_BODY_MAX;
	char *at = buf_reserve(out, room);

	if (!at)
		return;
	for (enum cut cut = CUT_NONE; cut < CUT_COUNT; cut++) {
		struct writer w = {.at = at, .end = at + room, .cut = cut};

		if (write_members(&w, r)) {
			buf_commit(out, (size_t)(w.at - at));
			return;
		}
	}
	out->spent = true;
}
