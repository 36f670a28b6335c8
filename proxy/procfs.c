#include "proxy/procfs.h"

#include <string.h>

#define HUGE (INT64_C(1) << 60) /* above it a limit of version 1 means none */

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trimmed(struct span s)
{
	while (s.len && is_space(s.at[0]))
		s = span_skip(s, 1);
	while (s.len && (is_space(s.at[s.len - 1]) || s.at[s.len - 1] == '\n'))
		s.len--;
	return s;
}

/* The next word; false when there is none left. */
static bool next_word(struct span *rest, struct span *ret)
{
	size_t n = 0;

	*rest = trimmed(*rest);
	while (n < rest->len && !is_space(rest->at[n]))
		n++;
	*ret = (struct span){rest->at, n};
	*rest = span_skip(*rest, n);
	return n > 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static bool number(struct span s, int base, uint64_t *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.len; i++) {
		int digit = digit_of(s.at[i]);

		if (digit >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit, &n))
			return false;
	}
	*ret = n;
	return s.len > 0;
}

static bool small_number(struct span s, unsigned *ret)
{
	uint64_t n;

	if (!number(s, 10, &n) || n > UINT_MAX)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* --- status --- */

/* Effective is the second of four. */
static bool effective_id(struct span value, unsigned *ret)
{
	struct span word;

	for (int i = 0; i < 2; i++)
		if (!next_word(&value, &word))
			return false;
	return small_number(word, ret);
}

static unsigned count_words(struct span value)
{
	struct span word;
	unsigned n = 0;

	while (next_word(&value, &word))
		n++;
	return n;
}

enum {
	SAW_PARENT = 1,
	SAW_UID = 2,
	SAW_GID = 4,
	SAW_CAPS = 8 * 15,
	SAW_NNP = 128,
	SAW_SECCOMP = 256
};
#define SAW_ALL (SAW_PARENT | SAW_UID | SAW_GID | SAW_CAPS | SAW_NNP | SAW_SECCOMP)

static unsigned take_capability(struct span key, struct span value, struct procfs_status *ret)
{
	const struct {
		const char *key;
		uint64_t *to;
		unsigned saw;
	} sets[] = {
		{"CapInh", &ret->cap_inh, 0},  {"CapPrm", &ret->cap_prm, 8},
		{"CapEff", &ret->cap_eff, 16}, {"CapBnd", &ret->cap_bnd, 32},
		{"CapAmb", &ret->cap_amb, 64},
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (span_is(key, sets[i].key))
			return number(value, 16, sets[i].to) ? sets[i].saw : 0;
	return 0;
}

static unsigned take_field(struct span key, struct span value, struct procfs_status *ret)
{
	unsigned n;

	if (span_is(key, "PPid"))
		return small_number(value, &ret->parent) ? SAW_PARENT : 0;
	if (span_is(key, "Uid"))
		return effective_id(value, &ret->uid) ? SAW_UID : 0;
	if (span_is(key, "Gid"))
		return effective_id(value, &ret->gid) ? SAW_GID : 0;
	if (span_is(key, "NSpid"))
		ret->depth = count_words(value);
	else if (span_is(key, "Seccomp_filters") && small_number(value, &n) && n <= INT_MAX)
		ret->filters = (int)n;
	if (span_is(key, "NoNewPrivs") && small_number(value, &n) && n <= 1) {
		ret->no_new_privs = n == 1;
		return SAW_NNP;
	}
	if (span_is(key, "Seccomp") && small_number(value, &n) && n <= 2) {
		ret->seccomp = (int)n;
		return SAW_SECCOMP;
	}
	return take_capability(key, value, ret);
}

/* The name of the program comes first and has its line ends escaped, so no key is its making. */
bool procfs_status(struct span text, struct procfs_status *ret)
{
	unsigned saw = 0;

	*ret = (struct procfs_status){.filters = -1};
	while (text.len) {
		struct span line, key;

		span_cut(&text, '\n', &line);
		if (span_cut(&line, ':', &key))
			saw |= take_field(key, trimmed(line), ret);
	}
	return (saw & SAW_ALL) == SAW_ALL;
}

/* --- stat --- */

#define EXITING 4 /* PF_EXITING of the kernel's include/linux/sched.h */

static bool has_ended(int field, struct span word)
{
	uint64_t flags;

	if (field == 3)
		return span_is(word, "Z") || span_is(word, "X");
	return field == 9 && (!number(word, 10, &flags) || flags & EXITING);
}

/* Behind the name, which may hold ") S 1": the last parenthesis ends it. */
bool procfs_start_time(struct span text, uint64_t *ret)
{
	const char *end = text.len ? memrchr(text.at, ')', text.len) : NULL;
	struct span rest, word;

	if (!end)
		return false;
	rest = span_skip(text, (size_t)(end - text.at) + 1);
	for (int field = 3; field <= 22; field++)
		if (!next_word(&rest, &word) || has_ended(field, word))
			return false;
	return number(word, 10, ret);
}

/* --- mountinfo --- */

static bool device(struct span s, struct procfs_mount *ret)
{
	struct span major;

	return span_cut(&s, ':', &major) && small_number(major, &ret->major) &&
	       small_number(s, &ret->minor);
}

static bool mount_id(struct span *rest, int64_t *ret)
{
	struct span word;
	uint64_t n;

	if (!next_word(rest, &word) || !number(word, 10, &n) || n > INT64_MAX)
		return false;
	*ret = (int64_t)n;
	return true;
}

/* What stands between the options and the dash: "shared:2 master:1". */
static bool propagation(struct span *rest, const char **ret)
{
	struct span word;

	*ret = "private";
	while (next_word(rest, &word)) {
		if (span_is(word, "-"))
			return true;
		if (span_starts(word, "shared:"))
			*ret = "shared";
		else if (span_starts(word, "master:") && strcmp(*ret, "private") == 0)
			*ret = "slave";
		else if (span_is(word, "unbindable"))
			*ret = "unbindable";
	}
	return false;
}

static bool mount_line(struct span line, struct procfs_mount *ret)
{
	struct span word;

	*ret = (struct procfs_mount){0};
	if (!mount_id(&line, &ret->id) || !mount_id(&line, &ret->parent) ||
	    !next_word(&line, &word) || !device(word, ret) || !next_word(&line, &ret->root) ||
	    !next_word(&line, &ret->point) || !next_word(&line, &ret->options) ||
	    !propagation(&line, &ret->propagation) || !next_word(&line, &ret->type))
		return false;
	next_word(&line, &ret->source);
	next_word(&line, &ret->super);
	return true;
}

bool procfs_mount(struct span *rest, struct procfs_mount *ret, unsigned *bad)
{
	while (rest->len) {
		struct span line;
		/* Without its line end it was cut off. */
		bool whole = span_cut(rest, '\n', &line);

		if (whole && mount_line(line, ret))
			return true;
		if (line.len)
			++*bad;
	}
	return false;
}

static bool octal(struct span s, char *ret)
{
	unsigned n = 0;

	if (s.len < 4)
		return false;
	for (size_t i = 1; i < 4; i++) {
		if (s.at[i] < '0' || s.at[i] > '7')
			return false;
		n = n * 8 + (unsigned)(s.at[i] - '0');
	}
	*ret = (char)n;
	return n > 0 && n < 256;
}

bool procfs_unescape(struct span text, char *out, size_t size)
{
	size_t used = 0;

	while (text.len) {
		char c = text.at[0];
		bool escaped = c == '\\';

		if (used + 1 >= size || c == '\0' || (escaped && !octal(text, &c)))
			return false;
		out[used++] = c;
		text = span_skip(text, escaped ? 4 : 1);
	}
	if (size)
		out[used] = '\0';
	return size > 0;
}

bool procfs_has_word(struct span list, const char *word)
{
	struct span one;
	bool more;

	do {
		more = span_cut(&list, ',', &one);
		if (span_is(one, word))
			return true;
	} while (more);
	return false;
}

/* --- control groups --- */

static bool leads_out(struct span path)
{
	return !path.at || !path.len || path.at[0] != '/' || memmem(path.at, path.len, "/..", 3) ||
	       memchr(path.at, '\0', path.len);
}

/* "4:memory:/docker/ID", "0::/docker/ID" */
bool procfs_cgroup(struct span text, const char *controller, struct span *ret)
{
	while (text.len) {
		struct span line, number_part, controllers;

		span_cut(&text, '\n', &line);
		if (!span_cut(&line, ':', &number_part) || !span_cut(&line, ':', &controllers))
			continue;
		if (*controller ? !procfs_has_word(controllers, controller)
				: controllers.len || !span_is(number_part, "0"))
			continue;
		if (leads_out(line))
			return false;
		*ret = line;
		return true;
	}
	return false;
}

bool procfs_limit(struct span text, int64_t *ret)
{
	uint64_t n;

	text = trimmed(text);
	if (!span_is(text, "max") && !span_is(text, "-1")) {
		if (!number(text, 10, &n))
			return false;
		if (n < (uint64_t)HUGE) {
			*ret = (int64_t)n;
			return true;
		}
	}
	*ret = PROCFS_UNLIMITED;
	return true;
}
