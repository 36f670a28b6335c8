#include "proxy/emergency.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The writer fills the half that nobody reads, then turns.  One that dies in between has
 * changed nothing; a reader whose half was written meanwhile reads again.
 */
struct table {
	_Atomic uint64_t turn;
	struct emergency_view halves[2];
};

/* The same memory, twice: a mapping made behind the seal cannot be made writable. */
struct emergency {
	struct table *write; /* NULL: not in this process */
	const struct table *read;
};

#define TRIES 100

static struct table *map(int fd, int how)
{
	void *at = mmap(NULL, sizeof(struct table), how, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int open_table(struct emergency *t)
{
	auto_fd int fd = memfd_create("sallyport-emergency", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, sizeof(struct table)) < 0)
		return -1;
	t->write = map(fd, PROT_READ | PROT_WRITE);
	if (!t->write ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0)
		return -1;
	t->read = map(fd, PROT_READ);
	return t->read ? 0 : -1;
}

struct emergency *emergency_create(struct err *err)
{
	struct emergency *t = calloc(1, sizeof(*t));

	if (t && open_table(t) == 0)
		return t;
	err_sys(err, "make the table of quarantines");
	emergency_destroy(t);
	return NULL;
}

void emergency_destroy(struct emergency *t)
{
	if (!t)
		return;
	emergency_only_read(t);
	if (t->read)
		munmap((void *)(uintptr_t)t->read, sizeof(*t->read));
	free(t);
}

void emergency_only_read(struct emergency *t)
{
	if (t->write)
		munmap(t->write, sizeof(*t->write));
	t->write = NULL;
}

void emergency_publish(struct emergency *t, struct emergency_view *next)
{
	uint64_t turn = atomic_load(&t->write->turn) + 1;

	next->turn = turn;
	t->write->halves[turn % 2] = *next;
	atomic_store(&t->write->turn, turn);
}

/* Whoever writes the table makes readers look at nothing behind their views. */
static void contain(struct emergency_view *view)
{
	if (view->owner_count > EMERGENCY_OWNERS)
		view->owner_count = EMERGENCY_OWNERS;
	if (view->mode_count > EMERGENCY_MODES)
		view->mode_count = EMERGENCY_MODES;
	for (size_t i = 0; i < view->owner_count; i++) {
		view->owners[i].owner[EMERGENCY_OWNER_MAX] = '\0';
		view->owners[i].ticket[EMERGENCY_TICKET_MAX] = '\0';
	}
	for (size_t i = 0; i < view->mode_count; i++) {
		view->modes[i].profile[EMERGENCY_PROFILE_MAX] = '\0';
		view->modes[i].ticket[EMERGENCY_TICKET_MAX] = '\0';
	}
}

bool emergency_look(const struct emergency *t, struct emergency_view *view)
{
	for (int tries = 0; tries < TRIES; tries++) {
		uint64_t turn = atomic_load(&t->read->turn);

		if (turn == view->turn)
			return false;
		*view = t->read->halves[turn % 2];
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(&t->read->turn) == turn) {
			contain(view);
			return true;
		}
	}
	*view = (struct emergency_view){0};
	return true;
}

static struct quarantine *find(struct emergency_view *view, const char *owner)
{
	for (size_t i = 0; i < view->owner_count && i < EMERGENCY_OWNERS; i++)
		if (strcmp(view->owners[i].owner, owner) == 0)
			return &view->owners[i];
	return NULL;
}

const struct quarantine *emergency_quarantine(const struct emergency_view *view, const char *owner)
{
	for (size_t i = 0; i < view->owner_count && i < EMERGENCY_OWNERS; i++)
		if (strncmp(view->owners[i].owner, owner, EMERGENCY_OWNER_MAX + 1) == 0)
			return &view->owners[i];
	return NULL;
}

struct quarantine *emergency_begin(struct emergency_view *view, const char *owner,
				   const char *ticket, bool kill)
{
	struct quarantine *q = find(view, owner);

	if (!*owner || strlen(owner) > EMERGENCY_OWNER_MAX ||
	    !emergency_is_word(ticket, strlen(ticket), EMERGENCY_TICKET_MAX) ||
	    (!q && view->owner_count == EMERGENCY_OWNERS))
		return NULL;
	if (!q) {
		q = &view->owners[view->owner_count++];
		memset(q, 0, sizeof(*q));
		q->since = (int64_t)(clock_unix_ns() / 1000000000);
		snprintf(q->owner, sizeof(q->owner), "%s", owner);
	}
	q->id = ++view->last_id;
	q->kill = q->kill || kill;
	snprintf(q->ticket, sizeof(q->ticket), "%s", ticket);
	return q;
}

void emergency_end(struct emergency_view *view, const char *owner)
{
	struct quarantine *q = find(view, owner);

	if (!q)
		return;
	view->owner_count--;
	memmove(q, q + 1, (size_t)(&view->owners[view->owner_count] - q) * sizeof(*q));
	memset(&view->owners[view->owner_count], 0, sizeof(*q));
}

/* --- profiles that only warn --- */

static struct emergency_mode *find_mode(struct emergency_view *view, const char *profile)
{
	for (size_t i = 0; i < view->mode_count && i < EMERGENCY_MODES; i++)
		if (strcmp(view->modes[i].profile, profile) == 0)
			return &view->modes[i];
	return NULL;
}

bool emergency_mode_holds(const struct emergency_mode *m)
{
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000);

	return now >= m->since && now < m->until && clock_boot_ms() < m->ends_ms;
}

const struct emergency_mode *emergency_mode(const struct emergency_view *view, const char *profile)
{
	for (size_t i = 0; i < view->mode_count && i < EMERGENCY_MODES; i++) {
		const struct emergency_mode *m = &view->modes[i];

		if (strncmp(m->profile, profile, EMERGENCY_PROFILE_MAX + 1) == 0)
			return emergency_mode_holds(m) ? m : NULL;
	}
	return NULL;
}

struct emergency_mode *emergency_mode_begin(struct emergency_view *view, const char *profile,
					    const char *ticket, uint64_t seconds)
{
	struct emergency_mode *m = find_mode(view, profile);

	if (!emergency_is_word(profile, strlen(profile), EMERGENCY_PROFILE_MAX) ||
	    !emergency_is_word(ticket, strlen(ticket), EMERGENCY_TICKET_MAX) || !seconds ||
	    seconds > EMERGENCY_MODE_MAX_S || (!m && view->mode_count == EMERGENCY_MODES))
		return NULL;
	if (!m)
		m = &view->modes[view->mode_count++];
	memset(m, 0, sizeof(*m));
	m->since = (int64_t)(clock_unix_ns() / 1000000000);
	m->until = m->since + (int64_t)seconds;
	m->ends_ms = clock_boot_ms() + seconds * 1000;
	snprintf(m->profile, sizeof(m->profile), "%s", profile);
	snprintf(m->ticket, sizeof(m->ticket), "%s", ticket);
	return m;
}

void emergency_mode_end(struct emergency_view *view, const char *profile)
{
	struct emergency_mode *m = find_mode(view, profile);

	if (!m)
		return;
	view->mode_count--;
	memmove(m, m + 1, (size_t)(&view->modes[view->mode_count] - m) * sizeof(*m));
	memset(&view->modes[view->mode_count], 0, sizeof(*m));
}

bool emergency_is_word(const char *text, size_t len, size_t most)
{
	static const char more[] = "._-@#/:+";

	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool plain =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!plain && (!c || !strchr(more, c)))
			return false;
	}
	return len >= 1 && len <= most;
}
