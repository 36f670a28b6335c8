#include "audit/sink_priv.h"

#include "audit/export_priv.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

#define FACILITY 13 /* log audit */

/* 32473 is the enterprise number that RFC 5612 keeps for examples: there is none of our own. */
#define SD_ID "sallyport@32473"

static int syslog_severity(const struct fields *f)
{
	static const int of[] = {[SEVERITY_USUAL] = 6, [SEVERITY_DENIED] = 4, [SEVERITY_ALARM] = 1};

	return of[export_severity_of(f)];
}

/* Printable ASCII without spaces, as heads of messages are; "-" if nothing is left. */
static void put_name(struct buf *out, const char *text, size_t most)
{
	size_t n = 0;

	for (; *text && n < most; text++)
		if (*text > 0x20 && *text < 0x7f) {
			buf_put(out, text, 1);
			n++;
		}
	if (!n)
		buf_puts(out, "-");
}

/* A parameter; what would end it is escaped, control bytes become '?'. */
static void put_param(struct buf *out, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_printf(out, " %s=\"", name);
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;

		if (c == '"' || c == '\\' || c == ']')
			buf_puts(out, "\\");
		buf_put(out, c < 0x20 || c == 0x7f ? "?" : value, 1);
	}
	buf_puts(out, "\"");
}

/* RFC 5424 knows microseconds, no more. */
static void put_time(struct buf *out, const struct fields *f)
{
	char text[CLOCK_TEXT_MAX];

	if (!f->t_ns) {
		buf_puts(out, "-");
		return;
	}
	clock_format(f->t_ns, text);
	buf_printf(out, "%.26sZ", text);
}

static void put_number(char out[24], uint64_t n)
{
	snprintf(out, 24, "%" PRIu64, n);
}

static void put_hash(struct span line, char out[HASH_HEX_LEN + 1])
{
	struct line l;

	*out = '\0';
	if (line_split(line, &l))
		hash_hex(&l.hash, out);
}

static void put_params(struct buf *out, const struct fields *f, struct span line)
{
	char seq[24], hex[HASH_HEX_LEN + 1];
	const struct {
		const char *name, *value;
	} params[] = {
		{"log", f->log},           {"seq", seq},          {"h", hex},
		{"type", f->type_name},    {"id", f->id},         {"of", f->of},
		{"identity", f->identity}, {"op", f->op},         {"object", f->object},
		{"profile", f->profile},   {"rule", f->rule},     {"verdict", f->verdict},
		{"reason", f->reason},     {"status", f->status},
	};

	put_number(seq, f->seq);
	put_hash(line, hex);
	buf_puts(out, "[" SD_ID);
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		put_param(out, params[i].name, params[i].value);
	buf_puts(out, "]");
}

void sink_render_syslog(const struct fields *f, struct span line, enum export_format format,
			const char *host, struct arena *a, struct buf *out)
{
	buf_printf(out, "<%d>1 ", FACILITY * 8 + syslog_severity(f));
	put_time(out, f);
	buf_puts(out, " ");
	put_name(out, host, 255);
	buf_puts(out, " sallyport - ");
	put_name(out, f->type_name, 32);
	buf_puts(out, " ");
	put_params(out, f, line);
	buf_puts(out, " ");
	if (format == EXPORT_NONE)
		buf_put(out, line.at, line.len);
	else
		export_record(format, f, a, out);
}

/* A value with a newline, or anything odd, goes by its length. */
static void put_field(struct buf *out, const char *name, struct span value)
{
	uint64_t len = htole64(value.len);

	if (!value.len)
		return;
	buf_puts(out, name);
	buf_puts(out, "\n");
	buf_put(out, &len, sizeof(len));
	buf_put(out, value.at, value.len);
	buf_puts(out, "\n");
}

void sink_render_journal(const struct fields *f, struct span line, struct buf *out)
{
	char seq[24], hex[HASH_HEX_LEN + 1], level[2] = {(char)('0' + syslog_severity(f)), '\0'};
	char text[512];
	const struct {
		const char *name, *value;
	} params[] = {
		{"PRIORITY", level},
		{"SYSLOG_IDENTIFIER", "sallyport"},
		{"MESSAGE", text},
		{"SALLYPORT_LOG", f->log},
		{"SALLYPORT_SEQ", seq},
		{"SALLYPORT_HASH", hex},
		{"SALLYPORT_TIME", f->time},
		{"SALLYPORT_TYPE", f->type_name},
		{"SALLYPORT_ID", f->id},
		{"SALLYPORT_OF", f->of},
		{"SALLYPORT_IDENTITY", f->identity},
		{"SALLYPORT_OP", f->op},
		{"SALLYPORT_OBJECT", f->object},
		{"SALLYPORT_PROFILE", f->profile},
		{"SALLYPORT_RULE", f->rule},
		{"SALLYPORT_VERDICT", f->verdict},
		{"SALLYPORT_REASON", f->reason},
		{"SALLYPORT_STATUS", f->status},
	};

	put_number(seq, f->seq);
	put_hash(line, hex);
	snprintf(text, sizeof(text), "%.64s%s%.64s%s%.128s%s%.32s%s%.64s", f->type_name,
		 *f->identity ? " " : "", f->identity, *f->op ? " " : "", f->op,
		 *f->verdict ? " " : "", f->verdict, *f->reason ? " " : "", f->reason);
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		put_field(out, params[i].name, span_of(params[i].value));
	put_field(out, "SALLYPORT_RECORD", line);
}

/* --- what is no record --- */

#define SAY_TYPE  "ship_alarm"
#define SAY_ARENA ((size_t)64 << 10)

void sink_say_json(const struct saying *what, struct buf *out)
{
	struct arena *a = arena_create(SAY_ARENA);
	char now[CLOCK_TEXT_MAX];
	struct jv tree = jv_object();

	if (!a)
		return;
	clock_format(clock_unix_ns(), now);
	jv_set(a, &tree, "type", jv_string(SAY_TYPE));
	jv_set(a, &tree, "log", jv_string(what->log));
	jv_set(a, &tree, "t", jv_string(now));
	jv_set(a, &tree, "cause", jv_string(what->cause));
	jv_set(a, &tree, "text", jv_string(what->text));
	jv_set(a, &tree, "began", jv_string(what->began));
	if (*what->ended)
		jv_set(a, &tree, "ended", jv_string(what->ended));
	jv_write(out, &tree);
	arena_destroy(a);
}

void sink_say_syslog(const struct saying *what, const char *host, struct buf *out)
{
	char now[CLOCK_TEXT_MAX];

	clock_format(clock_unix_ns(), now);
	buf_printf(out, "<%d>1 %.26sZ ", FACILITY * 8 + 1, now);
	put_name(out, host, 255);
	buf_puts(out, " sallyport - " SAY_TYPE " [" SD_ID);
	put_param(out, "log", what->log);
	put_param(out, "cause", what->cause);
	buf_puts(out, "] ");
	sink_say_json(what, out);
}

void sink_say_journal(const struct saying *what, struct buf *out)
{
	const struct {
		const char *name, *value;
	} params[] = {
		{"PRIORITY", "1"},
		{"SYSLOG_IDENTIFIER", "sallyport"},
		{"MESSAGE", what->text},
		{"SALLYPORT_LOG", what->log},
		{"SALLYPORT_TYPE", SAY_TYPE},
		{"SALLYPORT_CAUSE", what->cause},
		{"SALLYPORT_BEGAN", what->began},
		{"SALLYPORT_ENDED", what->ended},
	};

	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		put_field(out, params[i].name, span_of(params[i].value));
}
