#include "proxy/updates.h"

#include "gate/base/auto.h"
#include "gate/base/hash.h"
#include "gate/base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x7570646174653031 /* another layout is another table */

struct slot {
	_Atomic uint64_t turn;  /* odd while it is written */
	_Atomic int64_t began;  /* when that was begun */
	_Atomic int64_t until;  /* 0: free */
	struct hash owner, key; /* of the caller; of caller, backend and name */
	struct hash sum;        /* of key and text */
	_Atomic uint32_t len;
	char text[UPDATES_TEXT_MAX];
};

struct updates {
	uint64_t magic, size;
	unsigned char seal_key[SEAL_KEY_BYTES];
	struct slot slots[UPDATES_SLOTS];
};

/* --- making it --- */

static int start_afresh(struct updates *t, struct err *err)
{
	memset(t, 0, sizeof(*t));
	if (getrandom(t->seal_key, sizeof(t->seal_key), 0) != sizeof(t->seal_key))
		return err_sys(err, "get random bytes");
	t->size = sizeof(*t);
	t->magic = MAGIC;
	return 0;
}

static int open_file(const char *path, struct err *err)
{
	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s", path);
	if (!S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid()) || (st.st_mode & 077))
		return err_set(err, ERR_CONFIG,
			       "%s must be a file that only root or the gate's user can read and "
			       "write",
			       path);
	if (ftruncate(fd, sizeof(struct updates)) < 0)
		return err_sys(err, "make room in %s", path);
	return take_fd(fd);
}

struct updates *updates_create(const char *path, struct err *err)
{
	auto_fd int fd = -1;
	struct updates *t;

	if (*path) {
		fd = open_file(path, err);
		if (fd < 0)
			return NULL;
	}
	t = shared_create(sizeof(*t), fd, "the table of updates", err);
	if (t && (t->magic != MAGIC || t->size != sizeof(*t)) && start_afresh(t, err) < 0)
		return NULL;
	return t;
}

const unsigned char *updates_seal_key(const struct updates *t)
{
	return t->seal_key;
}

/* --- keys --- */

/* Callers without a name are told apart by their user. */
static struct hash owner_of(const struct updates_key *key)
{
	const struct identity *who = key->who;
	char text[1024];
	int len = snprintf(text, sizeof(text), "%s\n%s\n%lld\n%s", who->name, who->owner,
			   !*who->name && who->has_cred ? (long long)who->uid : -1, key->backend);

	return hash_of(
		(struct span){text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1});
}

static struct hash key_of(const struct updates_key *key, const struct hash *owner)
{
	return hash_two((struct span){(const char *)owner->bytes, HASH_BYTES}, span_of(key->name));
}

static struct hash sum_of(const struct hash *key, const char *text, size_t len)
{
	return hash_two((struct span){(const char *)key->bytes, HASH_BYTES},
			(struct span){text, len});
}

/* --- writing --- */

/* True if the slot is ours to write: its counter is odd then. */
static bool claim(struct slot *s, int64_t now)
{
	uint64_t turn = atomic_load(&s->turn);

	if (turn % 2 && atomic_load(&s->began) + UPDATES_SILENCE_S > now &&
	    atomic_load(&s->began) <= now)
		return false;
	if (!atomic_compare_exchange_strong(&s->turn, &turn, turn % 2 ? turn + 2 : turn + 1))
		return false;
	atomic_store(&s->began, now);
	return true;
}

static void fill(struct slot *s, const struct hash *owner, const struct hash *key, struct span text,
		 int64_t until)
{
	s->owner = *owner;
	s->key = *key;
	atomic_store(&s->len, (uint32_t)text.len);
	memcpy(s->text, text.at, text.len);
	s->sum = sum_of(key, text.at, text.len);
	atomic_store(&s->until, until);
	atomic_fetch_add(&s->turn, 1);
}

/* The one that has this key, else a free one; NULL: the caller has as many as it may. */
static struct slot *find_place(struct updates *t, const struct hash *owner, const struct hash *key,
			       int64_t now)
{
	size_t own = 0, place = UPDATES_SLOTS;

	for (size_t i = 0; i < UPDATES_SLOTS; i++) {
		struct slot *s = &t->slots[i];
		bool live = atomic_load(&s->until) > now;

		if (live && hash_eq(&s->key, key))
			return s;
		own += live && hash_eq(&s->owner, owner);
		if (!live && place == UPDATES_SLOTS &&
		    (atomic_load(&s->turn) % 2 == 0 ||
		     atomic_load(&s->began) + UPDATES_SILENCE_S <= now))
			place = i;
	}
	return own < UPDATES_OWN_MAX && place < UPDATES_SLOTS ? &t->slots[place] : NULL;
}

bool updates_put(struct updates *t, const struct updates_key *key, struct span text, int64_t now,
		 int64_t keep_s)
{
	struct hash owner = owner_of(key), hash = key_of(key, &owner);

	if (text.len > UPDATES_TEXT_MAX)
		return false;
	for (int tries = 0; tries < 8; tries++) {
		struct slot *s = find_place(t, &owner, &hash, now);

		if (!s)
			return false;
		if (!claim(s, now))
			continue;
		/* It may have become another's between the look and the claim. */
		if (atomic_load(&s->until) > now && !hash_eq(&s->key, &hash)) {
			atomic_fetch_add(&s->turn, 1);
			continue;
		}
		fill(s, &owner, &hash, text, now + keep_s);
		return true;
	}
	return false;
}

/* --- reading --- */

static bool read_slot(const struct slot *s, const struct hash *key, int64_t now, struct buf *ret)
{
	uint64_t before = atomic_load(&s->turn);
	size_t at = buf_len(ret), len = atomic_load(&s->len);
	struct hash sum;

	if (before % 2 || atomic_load(&s->until) <= now || !hash_eq(&s->key, key) ||
	    len > UPDATES_TEXT_MAX)
		return false;
	buf_put(ret, s->text, len);
	sum = s->sum;
	if (buf_spent(ret) || atomic_load(&s->turn) != before)
		return false;
	struct hash is = sum_of(key, buf_span(ret).at + at, len);

	return hash_eq(&is, &sum);
}

bool updates_get(const struct updates *t, const struct updates_key *key, int64_t now,
		 struct buf *ret)
{
	struct hash owner = owner_of(key), hash = key_of(key, &owner);

	for (int tries = 0; tries < 3; tries++)
		for (size_t i = 0; i < UPDATES_SLOTS; i++) {
			if (read_slot(&t->slots[i], &hash, now, ret))
				return true;
			buf_clear(ret);
		}
	return false;
}
