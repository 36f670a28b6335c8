#include "gate/successor.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)8 << 20)

/*
 * The pieces are those of a bundle; the first letter of a name says what it is:
 * i identity, l listener (each with the profile as its text), r a file of rules, and
 * "limits" with the three numbers.
 */
static void put(struct buf *out, char kind, const char *name, struct span text)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%c%s", kind, name);
	bundle_put(out, span_of(whole), text);
}

static void write_all(struct buf *out, const struct proxy_conf *next)
{
	bundle_begin(out);
	put(out, 'n', "",
	    (struct span){(const char *)&next->rule_limits, sizeof(next->rule_limits)});
	for (size_t i = 0; i < next->identity_count; i++)
		put(out, 'i', next->identities[i].name, span_of(next->identities[i].profile));
	for (size_t i = 0; i < next->listener_count; i++)
		put(out, 'l', next->listeners[i].name,
		    span_of(next->listeners[i].otherwise ? next->listeners[i].otherwise : ""));
	for (size_t i = 0; i < next->rule_count; i++)
		put(out, 'r', next->rules[i].name, next->rules[i].text);
}

int successor_write(const struct proxy_conf *next, struct bundle *ret, struct err *err)
{
	auto_fd int fd = memfd_create("sallyport-successor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct buf out;
	int rc = 0;

	if (fd < 0)
		return err_sys(err, "memory for the rules that follow");
	buf_init(&out, BUNDLE_MAX);
	write_all(&out, next);
	if (buf_spent(&out))
		rc = err_set(err, ERR_LIMIT, "the rules that follow are too long");
	else
		rc = io_write_all(fd, buf_span(&out).at, buf_len(&out), err);
	buf_fini(&out);
	if (rc == 0)
		rc = bundle_seal(fd, ret, err);
	if (rc == 0)
		take_fd(fd);
	return rc;
}

struct successor {
	struct bundle bundle;
	struct arena *arena;
	struct proxy_conf conf;
	struct conf_identity *identities;
	struct conf_listener *listeners;
	struct rule_source *rules;
};

static const char *text_of(struct successor *s, struct span text)
{
	return arena_strndup(s->arena, text.at, text.len);
}

static int take_piece(struct successor *s, struct span name, struct span text)
{
	char kind = name.len ? name.at[0] : 0;
	const char *called = text_of(s, span_skip(name, name.len ? 1 : 0));
	const char *copy = kind == 'i' || kind == 'l' ? text_of(s, text) : "";

	if (!called || !copy)
		return -1;
	if (kind == 'i')
		s->identities[s->conf.identity_count++] =
			(struct conf_identity){.name = called, .profile = copy};
	else if (kind == 'l')
		s->listeners[s->conf.listener_count++] =
			(struct conf_listener){.name = called, .otherwise = copy};
	else if (kind == 'r')
		s->rules[s->conf.rule_count++] = (struct rule_source){called, text};
	else if (kind == 'n' && text.len == sizeof(s->conf.rule_limits))
		memcpy(&s->conf.rule_limits, text.at, text.len);
	else
		return -1;
	return 0;
}

/* Room for as many of each kind as there are pieces in all. */
static int make_room(struct successor *s, struct span rest)
{
	struct span name, text;
	size_t pieces = 1;

	while (bundle_next(&rest, &name, &text))
		pieces++;
	s->identities = arena_take(s->arena, pieces * sizeof(*s->identities));
	s->listeners = arena_take(s->arena, pieces * sizeof(*s->listeners));
	s->rules = arena_take(s->arena, pieces * sizeof(*s->rules));
	s->conf.identities = s->identities;
	s->conf.listeners = s->listeners;
	s->conf.rules = s->rules;
	return s->identities && s->listeners && s->rules ? 0 : -1;
}

static int read_pieces(struct successor *s, struct err *err)
{
	struct span rest = s->bundle.text, name, text;

	if (!bundle_start(&rest) || make_room(s, rest) < 0)
		return err_set(err, ERR_SYSTEM, "the rules that follow cannot be read");
	while (bundle_next(&rest, &name, &text))
		if (take_piece(s, name, text) < 0)
			return err_set(err, ERR_SYSTEM, "the rules that follow cannot be read");
	return 0;
}

int successor_read(int fd, const struct proxy_conf **ret, void **ret_kept, struct err *err)
{
	struct successor *s = calloc(1, sizeof(*s));

	*ret_kept = s;
	if (!s) {
		close(fd);
		return err_sys(err, "memory for the rules that follow");
	}
	s->bundle.fd = -1;
	if (bundle_take(fd, &s->bundle, err) < 0)
		return -1;
	s->arena = arena_create(ARENA_MAX);
	if (!s->arena)
		return err_set(err, ERR_SYSTEM, "no memory for the rules that follow");
	*ret = &s->conf;
	return read_pieces(s, err);
}

void successor_drop(void *kept)
{
	struct successor *s = kept;

	if (!s)
		return;
	arena_destroy(s->arena);
	bundle_close(&s->bundle);
	free(s);
}
