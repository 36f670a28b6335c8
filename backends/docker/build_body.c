#include "backends/docker/build_priv.h"

#include "gate/base/hash.h"

#include <string.h>

#define INTAKE_ENOUGH 65536 /* bytes that one call gives; then the caller is asked to wait */

static enum intake refuse(struct backend_call *call, enum reason reason, const char *field,
			  const char *why, const char *hint)
{
	struct violation *v = docker_refuse(call, reason, field, NULL);

	v->text = why;
	if (hint)
		v->hint = hint;
	return INTAKE_REFUSED;
}

static enum intake tar_refused(struct backend_call *call, const struct tar *t)
{
	enum reason reason = REASON_build_context;
	struct violation *v;

	switch (tar_fault(t)) {
	case TAR_LARGE:
		reason = REASON_too_large;
		break;
	case TAR_MEMORY:
		reason = REASON_no_memory;
		break;
	case TAR_ENTRY:
	case TAR_MALFORMED:
	case TAR_FINE:
		break;
	}
	v = docker_refuse(call, reason, "body", tar_name(t));
	v->text = tar_why(t);
	if (reason == REASON_too_large)
		v->hint = "Exclude what is not needed with .dockerignore.";
	return INTAKE_REFUSED;
}

/* --- plain or packed --- */

static const struct {
	const char *bytes;
	size_t len;
	enum context_form form;
	const char *name;
} magics[] = {
	{"\x1f\x8b", 2, FORM_GZIP, "gzip"},
	{"BZh", 3, FORM_UNKNOWN, "bzip2"},
	{"\xfd"
	 "7zXZ",
	 5, FORM_UNKNOWN, "xz"},
	{"\x28\xb5\x2f\xfd", 4, FORM_UNKNOWN, "zstd"},
};

static bool says_gzip(const struct backend_call *call)
{
	return *call->req->content_coding != '\0';
}

/* By its first bytes, as engines do. */
static bool find_form(struct backend_call *call, struct docker_build *b)
{
	b->form = FORM_PLAIN;
	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++) {
		if (memcmp(b->begin, magics[i].bytes, magics[i].len) != 0)
			continue;
		b->form = magics[i].form;
		if (b->form == FORM_UNKNOWN)
			refuse(call, REASON_build_context, "body",
			       docker_text(call,
					   "the archive is packed with %s, of which the gate "
					   "reads only gzip",
					   magics[i].name),
			       "Send it plain, or packed with gzip.");
	}
	if (b->form == FORM_PLAIN && says_gzip(call))
		refuse(call, REASON_build_context, "Content-Encoding",
		       "the body is said to be gzip and is not", NULL);
	if (b->form == FORM_GZIP)
		b->gunzip = gunzip_open(call->arena);
	if (b->form == FORM_GZIP && !b->gunzip)
		docker_refuse(call, REASON_no_memory, "body", NULL);
	return !call->refused.count;
}

static bool feed(struct backend_call *call, struct docker_build *b, struct span piece,
		 struct buf *ret)
{
	if (tar_feed(b->tar, piece, ret) == 0)
		return true;
	tar_refused(call, b->tar);
	return false;
}

static bool unpack(struct backend_call *call, struct docker_build *b, struct span *piece,
		   struct buf *ret)
{
	size_t before = buf_len(ret);
	struct span out;

	do {
		if (gunzip_some(b->gunzip, piece, &out) < 0) {
			refuse(call, REASON_build_context, "body",
			       "the gzip stream is damaged, or something stands behind it", NULL);
			return false;
		}
		if (!feed(call, b, out, ret))
			return false;
	} while (out.len == GUNZIP_PIECE || (piece->len && buf_len(ret) - before < INTAKE_ENOUGH));
	return true;
}

static bool take(struct backend_call *call, struct docker_build *b, struct span *piece,
		 struct buf *ret)
{
	struct span now = *piece;

	if (b->form == FORM_GZIP)
		return unpack(call, b, piece, ret);
	if (now.len > INTAKE_ENOUGH)
		now.len = INTAKE_ENOUGH;
	*piece = span_skip(*piece, now.len);
	return feed(call, b, now, ret);
}

/* The first bytes are kept until there are enough of them to tell. */
static bool begin(struct backend_call *call, struct docker_build *b, struct span *piece,
		  struct buf *ret)
{
	size_t n = sizeof(b->begin) - b->begun;
	struct span first;

	n = n < piece->len ? n : piece->len;
	memcpy(b->begin + b->begun, piece->at, n);
	*piece = span_skip(*piece, n);
	b->begun += n;
	if (b->begun < sizeof(b->begin))
		return true;
	first = (struct span){b->begin, b->begun};
	return find_form(call, b) && take(call, b, &first, ret);
}

/* --- the Dockerfile --- */

static void read_file(struct backend_call *call, struct docker_build *b)
{
	struct span text = tar_wanted(b->tar);
	struct hash h = hash_of(text);

	hash_hex(&h, b->sha256);
	dockerfile_read(call->arena, text, &b->file);
	b->read = true;
}

static enum intake end(struct backend_call *call, struct docker_build *b, struct buf *ret)
{
	if (b->form == FORM_UNKNOWN || (b->gunzip && !gunzip_over(b->gunzip)))
		return refuse(call, REASON_build_context, "body",
			      b->begun ? "the archive ends early" : "there is no build context",
			      NULL);
	if (tar_end(b->tar, ret) < 0)
		return tar_refused(call, b->tar);
	if (!b->read)
		return refuse(call, REASON_build_file, b->name,
			      "this file is not in the build context",
			      "Name the Dockerfile as it is called there (docker build -f NAME).");
	return INTAKE_KNOWN;
}

enum intake docker_intake(struct backend *be, struct backend_call *call, struct span *piece,
			  bool over, struct buf *ret)
{
	struct docker_build *b;

	(void)be;
	if (call->op == OP_CONTAINER_ARCHIVE_PUT)
		return docker_intake_copy(call, piece, over, ret);
	b = docker_build(call);
	if (!b)
		return INTAKE_REFUSED;
	while (piece->len && b->form == FORM_UNKNOWN)
		if (!begin(call, b, piece, ret))
			return INTAKE_REFUSED;
	if (piece->len && !take(call, b, piece, ret))
		return INTAKE_REFUSED;
	if (!b->read && tar_found(b->tar))
		read_file(call, b);
	if (arena_spent(call->arena))
		return refuse(call, REASON_no_memory, "body", NULL, NULL);
	if (over)
		return end(call, b, ret);
	return b->read ? INTAKE_KNOWN : INTAKE_MORE;
}
