/*
 * sink_state.c - how far a sink is:
 *
 *	sallyport-sink 1
 *	log NAME
 *	seq N
 *	hash HEX
 *
 * Nothing else is taken for a state: a sink that is not sure where it was does not guess.
 */
#include "audit/sink_priv.h"

#include "audit/files_priv.h"
#include "gate/base/auto.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAX  1024
#define NAME_ROOM  96
#define STATE_HEAD "sallyport-sink 1"

/* The line "WORD VALUE"; empty if it is none. */
static struct span value_of(struct span *rest, const char *word)
{
	struct span line = {"", 0}, none = {"", 0};
	size_t len = strlen(word);

	if (!span_cut(rest, '\n', &line) || !span_starts(line, word) || line.len <= len + 1 ||
	    line.at[len] != ' ')
		return none;
	return span_skip(line, len + 1);
}

static int number_of(struct span s, uint64_t *ret)
{
	uint64_t n = 0;

	if (!s.len || (s.len > 1 && s.at[0] == '0'))
		return -1;
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9' || __builtin_mul_overflow(n, 10u, &n) ||
		    __builtin_add_overflow(n, (unsigned)(s.at[i] - '0'), &n))
			return -1;
	*ret = n;
	return 0;
}

int sink_state_parse(struct span text, struct cursor_mark *ret)
{
	struct span head, log, seq, hash;
	struct cursor_mark mark = {.seq = 0};

	if (!span_cut(&text, '\n', &head) || !span_is(head, STATE_HEAD))
		return -1;
	log = value_of(&text, "log");
	seq = value_of(&text, "seq");
	hash = value_of(&text, "hash");
	if (text.len || !log.len || log.len > LINE_ORIGIN_MAX || memchr(log.at, '\0', log.len) ||
	    number_of(seq, &mark.seq) < 0 || mark.seq == UINT64_MAX ||
	    hash_parse(hash, &mark.hash) < 0)
		return -1;
	memcpy(mark.log, log.at, log.len);
	if (!line_origin_ok(mark.log))
		return -1;
	*ret = mark;
	return 0;
}

static int check_owner(const struct sink_conf *conf, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at the folder %s", conf->state);
	if ((st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "the folder %s is not this user's alone to write: whoever else can could "
		       "have records left out (chown, chmod go-w)",
		       conf->state);
}

/* make: it is to be written to. */
static int open_folder(const struct sink_conf *conf, bool make, struct err *err)
{
	auto_fd int fd = -1;

	/* The auditor, another user, looks how far a sink is; nothing here is secret. */
	if (make && mkdir(conf->state, 0755) < 0 && errno != EEXIST)
		return err_sys(err, "make the folder %s", conf->state);
	fd = open(conf->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, "open the folder %s", conf->state);
	return make && check_owner(conf, fd, err) < 0 ? -1 : take_fd(fd);
}

int sink_state_own(const struct sink_conf *conf, struct err *err)
{
	struct stat st;
	auto_fd int fd = -1;

	if (stat(conf->state, &st) < 0 && errno == ENOENT)
		return 0;
	fd = open_folder(conf, true, err);
	return fd < 0 ? -1 : 0;
}

static void file_name(const struct sink_conf *conf, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%.64s.state", conf->name);
}

int sink_state_read(const struct sink_conf *conf, struct cursor_mark *ret, struct err *err)
{
	char name[NAME_ROOM];
	struct stat st;
	struct buf text;
	auto_fd int dir_fd = -1;
	int rc;

	if (stat(conf->state, &st) < 0 && errno == ENOENT)
		return 0;
	dir_fd = open_folder(conf, false, err);
	if (dir_fd < 0)
		return -1;
	file_name(conf, name);
	buf_init(&text, STATE_MAX);
	rc = file_take(dir_fd, name, false, &text, err);
	if (rc > 0 && sink_state_parse(buf_span(&text), ret) < 0)
		rc = err_set(err, ERR_CONFIG,
			     "%s/%s is no state of a sink: put the right one back, or remove it to "
			     "begin anew",
			     conf->state, name);
	buf_fini(&text);
	return rc;
}

int sink_state_keep(const struct sink_conf *conf, const struct cursor_mark *mark, struct err *err)
{
	char name[NAME_ROOM], hex[HASH_HEX_LEN + 1], text[STATE_MAX];
	auto_fd int dir_fd = open_folder(conf, true, err);

	if (dir_fd < 0)
		return -1;
	file_name(conf, name);
	hash_hex(&mark->hash, hex);
	snprintf(text, sizeof(text), STATE_HEAD "\nlog %s\nseq %" PRIu64 "\nhash %s\n", mark->log,
		 mark->seq, hex);
	return io_replace(dir_fd, name, 0644, span_of(text), err);
}

static void trouble_name(const struct sink_conf *conf, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%.64s.trouble", conf->name);
}

void sink_trouble_read(const struct sink_conf *conf, char *out, size_t size)
{
	char name[NAME_ROOM];
	struct buf text;
	struct err ignored;
	auto_fd int dir_fd = open(conf->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	trouble_name(conf, name);
	buf_init(&text, STATE_MAX);
	*out = '\0';
	if (dir_fd >= 0 && file_take(dir_fd, name, false, &text, &ignored) > 0)
		snprintf(out, size, "%.*s",
			 (int)(buf_len(&text) < size ? buf_len(&text) : size - 1),
			 buf_span(&text).at);
	for (char *c = out; *c; c++)
		if (*c == '\n' && !c[1])
			*c = '\0';
		else if (*c < 0x20 || *c >= 0x7f)
			*c = '?';
	buf_fini(&text);
}

void sink_trouble_keep(const struct sink_conf *conf, const char *text)
{
	char name[NAME_ROOM], line[STATE_MAX];
	struct err ignored = {0};
	auto_fd int dir_fd = open_folder(conf, *text != '\0', &ignored);

	if (dir_fd < 0)
		return;
	trouble_name(conf, name);
	if (!*text) {
		(void)unlinkat(dir_fd, name, 0);
		return;
	}
	snprintf(line, sizeof(line), "%s\n", text);
	(void)io_replace(dir_fd, name, 0644, span_of(line), &ignored);
}
