/* serve_next.c - the configuration that a reload brought, until it is in force. */
#include "gate/serve.h"

#include "gate/config_priv.h"
#include "gate/ledger.h"
#include "gate/successor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct restart_row {
	const char *word, *key;
};

static const struct restart_row rows[] = {
#define RESTART(word, key) {#word, key},
#include "gate/restart.def"
#undef RESTART
};

static bool same_key(const struct jv *a, const struct jv *b, const char *key)
{
	const struct jv *x = jv_get(a, key), *y = jv_get(b, key);

	return x && y ? jv_equal(x, y) : x == y;
}

static int row_differs(const struct restart_row *row, const struct config *now,
		       const struct config *next, struct err *err)
{
	struct config_entry a, b;
	bool in_a = true, in_b;

	for (size_t i = 0; in_a; i++) {
		in_a = config_entry_at(now->entries, now->path, row->word, i, &a);
		in_b = config_entry_at(next->entries, next->path, row->word, i, &b);
		if (in_a != in_b)
			return err_set(err, ERR_CONFIG,
				       "%s: there are more or fewer '%s' than before, which needs "
				       "a restart",
				       next->path, row->word);
		if (!in_a)
			break;
		if (strcmp(a.name, b.name) != 0)
			return config_wrong(&b, err, "was \"%s\", which needs a restart", a.name);
		if (!row->key && !jv_equal(a.value, b.value))
			return config_wrong(&b, err, "has changed, which needs a restart");
		if (row->key && !same_key(a.value, b.value, row->key))
			return config_wrong(&b, err, "'%s' has changed, which needs a restart",
					    row->key);
	}
	return 0;
}

int restart_needed(const struct config *now, const struct config *next, struct err *err)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (row_differs(&rows[i], now, next, err) < 0)
			return -1;
	return 0;
}

static int build_next(struct serve *s, struct err *err)
{
	struct config *c = &s->next.config;

	s->next.arena = arena_create(CONFIG_ARENA_MAX);
	if (!s->next.arena)
		return err_set(err, ERR_SYSTEM, "no memory");
	if (bundle_config(&s->next.bundle, s->next.arena, c, err) < 0 ||
	    restart_needed(&s->loaded->config, c, err) < 0 ||
	    ledger_carry(&s->loaded->config, c, s->next.arena, err) < 0 ||
	    serve_give_addresses(s, c, s->next.arena, err) < 0)
		return -1;
	serve_own_container(s, c);
	for (size_t i = 0; i < c->proxy.listener_count; i++)
		c->listeners[i].fd = s->listeners[i];
	return 0;
}

int serve_next(struct serve *s, int fd, const char **ret_generation, struct err *err)
{
	if (bundle_take(fd, &s->next.bundle, err) < 0)
		return -1;
	if (build_next(s, err) < 0 ||
	    successor_write(&s->next.config.proxy, &s->successor, err) < 0) {
		serve_forget(s);
		return -1;
	}
	*ret_generation = s->next.config.proxy.generation;
	return 0;
}

/* --- what can be returned to --- */

static void drop_kept(struct serve *s, size_t i)
{
	close(s->kept[i].fd);
	s->kept_count--;
	memmove(&s->kept[i], &s->kept[i + 1], (s->kept_count - i) * sizeof(*s->kept));
}

static size_t kept_bytes(const struct serve *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->kept_count; i++)
		n += s->kept[i].bytes;
	return n;
}

/* The one that ends; the one that begins is not kept beside what is in force. */
static void keep_bundle(struct serve *s, const struct bundle *ends, const char *begins)
{
	int fd = fcntl(ends->fd, F_DUPFD_CLOEXEC, 0);

	for (size_t i = s->kept_count; i-- > 0;)
		if (strcmp(s->kept[i].generation, begins) == 0 ||
		    strcmp(s->kept[i].generation, ends->generation) == 0)
			drop_kept(s, i);
	if (fd < 0)
		return;
	while (s->kept_count == KEPT_MAX ||
	       (s->kept_count && kept_bytes(s) + ends->text.len > KEPT_BYTES))
		drop_kept(s, 0);
	s->kept[s->kept_count] =
		(struct kept_bundle){.fd = fd, .bytes = ends->text.len, .until = time(NULL)};
	snprintf(s->kept[s->kept_count++].generation, HASH_HEX_LEN + 1, "%s", ends->generation);
}

int serve_kept(void *arg, const char *generation)
{
	const struct serve *s = arg;
	int found = -1;

	for (size_t i = 0; i < s->kept_count; i++) {
		if (strncmp(s->kept[i].generation, generation, strlen(generation)) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = s->kept[i].fd;
	}
	return found < 0 ? -1 : fcntl(found, F_DUPFD_CLOEXEC, 0);
}

void serve_switch(struct serve *s)
{
	bundle_close(&s->successor);
	/* A worker that switches for itself returns to nothing. */
	if (getpid() == s->supervisor)
		keep_bundle(s, &s->loaded->bundle, s->next.bundle.generation);
	unload(s->loaded);
	*s->loaded = s->next;
	s->next = (struct loaded){.bundle = {.fd = -1}};
	s->loaded->config.proxy.generation = s->loaded->bundle.generation;
}

void serve_forget(struct serve *s)
{
	bundle_close(&s->successor);
	unload(&s->next);
}
