#include "gate/self.h"

#include "gate/base/io.h"

#include <string.h>
#include <unistd.h>

#define PROC_TEXT_MAX ((size_t)1 << 20)
#define SHORT_ID      12

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A run of exactly 64 digits; the last one counts, since containers may be in containers. */
static bool find_id(struct span text, char ret[SELF_ID_MAX + 1])
{
	bool found = false;
	size_t run = 0;

	for (size_t i = 0; i <= text.len; i++) {
		if (i < text.len && is_hex(text.at[i])) {
			run++;
			continue;
		}
		if (run == SELF_ID_MAX) {
			memcpy(ret, text.at + i - run, SELF_ID_MAX);
			ret[SELF_ID_MAX] = '\0';
			found = true;
		}
		run = 0;
	}
	return found;
}

/* "0::/system.slice/docker-ID.scope", "5:devices:/docker/ID" */
bool self_in_cgroup(struct span text, char ret[SELF_ID_MAX + 1])
{
	struct span line, number, controllers;

	while (text.len) {
		span_cut(&text, '\n', &line);
		if (span_cut(&line, ':', &number) && span_cut(&line, ':', &controllers) &&
		    find_id(line, ret))
			return true;
	}
	return false;
}

/* The fourth word is what of the file system is mounted, the fifth where. */
static bool is_engines_file(struct span where)
{
	return span_is(where, "/etc/hostname") || span_is(where, "/etc/hosts") ||
	       span_is(where, "/etc/resolv.conf");
}

bool self_in_mounts(struct span text, char ret[SELF_ID_MAX + 1])
{
	struct span line, word, what = {"", 0};

	while (text.len) {
		span_cut(&text, '\n', &line);
		for (int i = 0; i < 4; i++) {
			span_cut(&line, ' ', &word);
			what = word;
		}
		span_cut(&line, ' ', &word);
		if (is_engines_file(word) && memmem(what.at, what.len, "/containers/", 12) &&
		    find_id(what, ret))
			return true;
	}
	return false;
}

bool self_in_hostname(const char *name, char ret[SELF_ID_MAX + 1])
{
	size_t digits = 0;

	while (is_hex(name[digits]))
		digits++;
	if (digits != SHORT_ID || name[digits])
		return false;
	memcpy(ret, name, SHORT_ID + 1);
	return true;
}

static bool look(const char *path, bool (*find)(struct span, char *), char *ret)
{
	struct err err = {0};
	struct buf text;
	bool found;

	if (io_read_file(path, PROC_TEXT_MAX, &text, &err) < 0)
		return false;
	found = find(buf_span(&text), ret);
	buf_fini(&text);
	return found;
}

bool self_container(char ret[SELF_ID_MAX + 1])
{
	char host[65] = "";

	if (look("/proc/self/cgroup", self_in_cgroup, ret) ||
	    look("/proc/self/mountinfo", self_in_mounts, ret))
		return true;
	return access("/.dockerenv", F_OK) == 0 && gethostname(host, sizeof(host) - 1) == 0 &&
	       self_in_hostname(host, ret);
}
