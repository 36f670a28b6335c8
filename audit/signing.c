#include "audit/signing_priv.h"

#include "gate/base/io.h"

#include "audit/files_priv.h"
#include "audit/log_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define KEY_FILE        "checkpoint.key"
#define NEXT_FILE       "checkpoint.key.new"
#define VKEY_FILE       "checkpoint.vkey"
#define CHECKPOINT_FILE "checkpoint"
#define ANCHOR_TAIL     65536
#define SYSLOG_NOTICE   "<37>" /* auth, notice */

/* --- keys --- */

static int keep_text(int dir_fd, const char *name, mode_t mode, const char *text, struct err *err)
{
	char line[NOTE_SKEY_MAX + 1];
	int n = snprintf(line, sizeof(line), "%s\n", text), result;

	result = io_replace(dir_fd, name, mode, (struct span){line, (size_t)n}, err);
	explicit_bzero(line, sizeof(line));
	return result;
}

static int keep_signer(const struct signing *s, const char *name, const struct note_signer *signer,
		       struct err *err)
{
	char text[NOTE_SKEY_MAX];
	int result;

	note_signer_format(signer, text);
	result = keep_text(s->keys_fd, name, 0600, text, err);
	explicit_bzero(text, sizeof(text));
	return result;
}

/* 1: read; 0: there is none; -1: it is there and cannot be used. */
static int read_signer(const struct signing *s, const char *name, struct note_signer *ret,
		       struct err *err)
{
	struct buf text;
	struct span line;
	int got;

	buf_init(&text, NOTE_SKEY_MAX + 1);
	got = file_take(s->keys_fd, name, true, &text, err);
	line = buf_span(&text);
	if (line.len && line.at[line.len - 1] == '\n')
		line.len--;
	if (got > 0 && !note_signer_parse(line, ret))
		got = err_set(err, ERR_INPUT, "%s is no signing key", name);
	if (text.mem)
		explicit_bzero(text.mem, text.size);
	buf_fini(&text);
	return got;
}

static int use(struct signing *s, const struct note_signer *signer, struct err *err)
{
	struct buf text;
	int got;

	s->signer = *signer;
	note_key_format(&s->signer.key, s->vkey);
	buf_init(&text, NOTE_VKEY_MAX + 1);
	got = file_take(s->keys_fd, VKEY_FILE, false, &text, err);
	if (got == 1 && buf_len(&text) == strlen(s->vkey) + 1 &&
	    span_starts(buf_span(&text), s->vkey))
		got = 2;
	buf_fini(&text);
	return got == 2 ? 0 : keep_text(s->keys_fd, VKEY_FILE, 0644, s->vkey, err);
}

static int open_key(struct signing *s, bool fresh, struct err *err)
{
	char name[LINE_ORIGIN_MAX + 1];
	struct note_signer signer;
	int got = read_signer(s, KEY_FILE, &signer, err), result;

	if (got == 0 && !fresh)
		return err_set(err, ERR_INPUT,
			       "%s is missing, and the log has a key: put it back where it was, or "
			       "start once with --accept-damage, which begins a new log",
			       KEY_FILE);
	if (got == 0) {
		note_name(s->origin, name);
		note_signer_make(name, &signer);
		got = keep_signer(s, KEY_FILE, &signer, err) < 0 ? -1 : 1;
	}
	result = got < 0 ? -1 : use(s, &signer, err);
	note_signer_wipe(&signer);
	return result;
}

int signing_prepare_next(struct signing *s, struct note_signer *ret, struct err *err)
{
	note_signer_make(s->signer.key.name, ret);
	return keep_signer(s, NEXT_FILE, ret, err);
}

int signing_take_next(struct signing *s, const struct note_signer *next, struct err *err)
{
	if (renameat(s->keys_fd, NEXT_FILE, s->keys_fd, KEY_FILE) < 0 || fsync(s->keys_fd) < 0)
		return err_sys(err, "put the new signing key in its place");
	return use(s, next, err);
}

int signing_match(struct signing *s, const char *vkey, struct err *err)
{
	char have[NOTE_VKEY_MAX] = "";
	struct note_signer next;
	int result = 0;

	if (!*vkey || strcmp(s->vkey, vkey) == 0)
		return 0;
	if (read_signer(s, NEXT_FILE, &next, err) > 0) {
		note_key_format(&next.key, have);
		if (strcmp(have, vkey) == 0)
			result = signing_take_next(s, &next, err);
		note_signer_wipe(&next);
	}
	if (strcmp(have, vkey) == 0)
		return result;
	return err_set(
		err, ERR_CONFIG,
		"%s is not the log's key (which is %s): put the right one back, or start once "
		"with --accept-damage, which begins a new log",
		KEY_FILE, vkey);
}

void signing_rotation_text(struct buf *out, const char *origin, const char *vkey)
{
	buf_printf(out, "%s\nkey rotation\n%s\n", origin, vkey);
}

/* --- what was signed before --- */

static void know(struct signing *s, const struct checkpoint *c, const char *where)
{
	if (!span_is(c->origin, s->origin))
		return; /* of the log before this one */
	s->known[s->known_count++] = (struct signing_known){c->size, c->root, where};
	if (c->size > s->last_size)
		s->last_size = c->size;
}

/* A file of ours that is there and says nothing was not written by us. */
static int know_file(struct signing *s, int dir_fd, const char *where, struct err *err)
{
	struct checkpoint c;
	struct buf text;
	int got;

	buf_init(&text, NOTE_CHECKPOINT_MAX);
	got = file_take(dir_fd, CHECKPOINT_FILE, false, &text, err);
	if (got > 0 && !checkpoint_parse(buf_span(&text), &c))
		got = err_set(err, ERR_INPUT,
			      "the audit log is damaged: %s is no checkpoint; move "
			      "it away if the log itself is good",
			      where);
	if (got > 0)
		know(s, &c, where);
	buf_fini(&text);
	return got < 0 ? -1 : 0;
}

/* The last note of a file to which notes are appended; a cut one at its end is passed over. */
static void know_anchor(struct signing *s)
{
	char mem[ANCHOR_TAIL];
	struct checkpoint c, last;
	struct stat st;
	struct span rest;
	bool any = false;
	long n;

	if (s->anchor_fd < 0 || fstat(s->anchor_fd, &st) < 0)
		return;
	rest.len = st.st_size > ANCHOR_TAIL ? ANCHOR_TAIL : (size_t)st.st_size;
	n = segment_read(s->anchor_fd, mem, rest.len, (uint64_t)st.st_size - rest.len);
	rest = (struct span){mem, n > 0 ? (size_t)n : 0};
	while (note_next(&rest, &c))
		if (span_is(c.origin, s->origin)) {
			last = c;
			any = true;
		}
	if (!any)
		return;
	know(s, &last, "the anchor file");
	s->anchored = last.size;
}

/* --- opening --- */

static int open_anchor(struct signing *s, const char *path, struct err *err)
{
	s->anchor_fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (s->anchor_fd < 0)
		return err_sys(err,
			       "the auditor's user must be able to make and write its anchor file: "
			       "open %s",
			       path);
	return 0;
}

/* Whether somebody listens may change; what is sent then is lost and counted. */
static void open_syslog(struct signing *s)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};

	s->syslog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->syslog_fd >= 0 &&
	    connect(s->syslog_fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		close(s->syslog_fd);
		s->syslog_fd = -1;
	}
}

void signing_init(struct signing *s)
{
	*s = (struct signing){.log_fd = -1, .keys_fd = -1, .anchor_fd = -1, .syslog_fd = -1};
}

int signing_open(struct signing *s, int log_fd, const struct signing_conf *conf, const char *origin,
		 bool fresh, struct err *err)
{
	s->log_fd = s->keys_fd = log_fd;
	snprintf(s->origin, sizeof(s->origin), "%s", origin);
	if (note_init(err) < 0)
		return -1;
	if (conf->keys)
		s->keys_fd = open(conf->keys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->keys_fd < 0)
		return err_sys(err, "open the folder of keys %s", conf->keys);
	if (open_key(s, fresh, err) < 0 ||
	    know_file(s, s->log_fd, "the file checkpoint in the log's folder", err) < 0 ||
	    (s->keys_fd != s->log_fd &&
	     know_file(s, s->keys_fd, "the file checkpoint in the folder of keys", err) < 0) ||
	    (conf->anchor_file && open_anchor(s, conf->anchor_file, err) < 0))
		return -1;
	know_anchor(s);
	s->syslog = conf->syslog;
	if (s->syslog)
		open_syslog(s);
	return 0;
}

void signing_close(struct signing *s)
{
	if (s->keys_fd >= 0 && s->keys_fd != s->log_fd)
		close(s->keys_fd);
	if (s->anchor_fd >= 0)
		close(s->anchor_fd);
	if (s->syslog_fd >= 0)
		close(s->syslog_fd);
	note_signer_wipe(&s->signer);
}

/* --- signing --- */

static void unpublished(struct signing *s, const char *where)
{
	s->unpublished++;
	err_sys(&s->trouble, "%s", where);
}

static void publish(struct signing *s, uint64_t size, struct span note)
{
	struct buf line;

	if (s->anchor_fd >= 0) {
		/* O_APPEND: whatever the offset, it goes to the end. */
		if (io_write_at(s->anchor_fd, note.at, note.len, 0) == 0 &&
		    fdatasync(s->anchor_fd) == 0)
			s->anchored = size;
		else
			unpublished(s, "append to the anchor file");
	}
	if (!s->syslog)
		return;
	buf_init(&line, NOTE_CHECKPOINT_MAX + 64);
	buf_puts(&line, SYSLOG_NOTICE "sallyport-checkpoint: ");
	for (size_t i = 0; i < note.len; i++)
		buf_puts(&line, note.at[i] == '\n' ? "\\n" : (char[]){note.at[i], '\0'});
	if (send(s->syslog_fd, buf_span(&line).at, buf_len(&line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		unpublished(s, "send to syslog");
	else
		s->sent = size;
	buf_fini(&line);
}

int signing_checkpoint(struct signing *s, const struct tree *tree,
		       char signature[NOTE_SIGNATURE_MAX], struct err *err)
{
	struct hash root = tree_root(tree);
	struct buf text, note;
	int result = -1;

	if (tree->size < s->last_size)
		return err_set(err, ERR_INPUT, "a tree of %llu records was signed before",
			       (unsigned long long)s->last_size);
	buf_init(&text, NOTE_CHECKPOINT_MAX);
	buf_init(&note, NOTE_CHECKPOINT_MAX);
	checkpoint_text(&text, s->origin, tree->size, &root);
	note_sign(&s->signer, buf_span(&text), signature);
	note_write(&note, buf_span(&text), s->signer.key.name, signature);
	if (io_replace(s->log_fd, CHECKPOINT_FILE, 0644, buf_span(&note), err) == 0 &&
	    (s->keys_fd == s->log_fd ||
	     io_replace(s->keys_fd, CHECKPOINT_FILE, 0644, buf_span(&note), err) == 0)) {
		s->last_size = tree->size;
		publish(s, tree->size, buf_span(&note));
		result = 0;
	}
	buf_fini(&text);
	buf_fini(&note);
	return result;
}
