#include "gate/keeper/keeper.h"

#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/keeper/fence.h"
#include "gate/keeper/state_priv.h"
#include "gate/privs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define READ_MAX 16384

/* --- ends --- */

/* With the lock. */
static void end_execs(struct keeper *k, const struct container *c)
{
	for (struct exec *e = k->execs; e; e = e->next)
		if (e->of == c && e->stage == EXEC_RUNNING)
			state_exec_ended(k, e, 128 + SIGKILL);
}

static int code_of(const struct box_exit *e)
{
	return e->signal ? 128 + e->signal : e->code;
}

/* With the lock. The box itself may go first: then nothing is known of the command. */
static void on_exit_of(struct keeper *k, struct container *c, const struct box_exit *e)
{
	c->oom = c->oom || e->oom;
	if (e->id == 0 || e->id == c->first) {
		if (c->stage == STAGE_RUNNING) {
			c->stage = STAGE_ENDING;
			c->exit_code = e->id ? code_of(e) : 128 + SIGKILL;
		}
		return;
	}
	for (struct exec *x = k->execs; x; x = x->next)
		if (x->of == c && x->child == e->id)
			state_exec_ended(k, x, code_of(e));
}

/* With the lock. */
static void read_exits(struct keeper *k, struct container *c)
{
	struct box_exit e;

	while (c->box && box_next_exit(c->box, &e) == 1) {
		on_exit_of(k, c, &e);
		state_changed(k);
		if (e.id == 0)
			break;
	}
}

/* Takes the box of a container that ends; NULL: none does, or somebody is in a call on it. */
static struct box *take_ending(struct keeper *k, struct container **ret)
{
	for (struct container *c = k->containers; c; c = c->next) {
		struct box *box = c->box;

		if (c->stage != STAGE_ENDING || !box || c->box_users)
			continue;
		c->box = NULL;
		c->refs++;
		*ret = c;
		return box;
	}
	return NULL;
}

static void close_input(struct container *c)
{
	if (c->to_first >= 0)
		close(c->to_first);
	c->to_first = -1;
}

/* Without the lock: it may take a while until everything is dead. */
static void end_boxes(struct keeper *k)
{
	struct container *c;
	struct box *box;

	pthread_mutex_lock(&k->lock);
	while ((box = take_ending(k, &c))) {
		struct err err = {0};

		pthread_mutex_unlock(&k->lock);
		if (box_end(box, &err) < 0)
			log_line("sandbox %.12s: %s", c->id, err.msg);
		pthread_mutex_lock(&k->lock);
		c->stage = STAGE_EXITED;
		c->finished_ns = clock_unix_ns();
		close_input(c);
		end_execs(k, c);
		state_changed(k);
		state_drop(k, c);
	}
	pthread_mutex_unlock(&k->lock);
}

void container_forget(struct keeper *k, const struct container *c)
{
	const struct fence state = {.root = k->conf->state};
	struct err err = {0};

	if (c->plan.mode == BOX_BARE && fence_remove(&state, c->id, true, &err) < 0 &&
	    err.sys != ENOENT)
		log_line("the folder of sandbox %.12s: %s", c->id, err.msg);
}

/* Those that were to go by themselves, once all that they wrote was read. */
static void remove_ended(struct keeper *k)
{
	struct container *c;

	do {
		pthread_mutex_lock(&k->lock);
		for (c = k->containers; c; c = c->next)
			if (c->stage == STAGE_EXITED && c->plan.auto_remove && c->output.over &&
			    !c->removing)
				break;
		if (c) {
			c->refs++;
			c->removing = true;
			state_remove(k, c);
		}
		pthread_mutex_unlock(&k->lock);
		if (!c)
			return;
		container_forget(k, c);
		pthread_mutex_lock(&k->lock);
		state_drop(k, c);
		pthread_mutex_unlock(&k->lock);
	} while (true);
}

/* --- output of first commands --- */

/* With the lock. */
static void read_output(struct keeper *k, struct container *c, int which)
{
	char bytes[READ_MAX];
	size_t room = output_room(c);
	ssize_t n;

	if (c->from_first[which] < 0 || !room)
		return;
	n = read(c->from_first[which], bytes, room < sizeof(bytes) ? room : sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		output_put(c, which + 1, (struct span){bytes, (size_t)n});
	} else { /* a terminal ends with an error */
		close(c->from_first[which]);
		c->from_first[which] = -1;
		c->output.over = c->from_first[0] < 0 && c->from_first[1] < 0;
	}
	state_changed(k);
}

/* --- the main thread --- */

/* One place of what is waited for: a box's ends, or a pipe of its first command. */
struct watched_fd {
	struct container *c; /* with a reference */
	int which;           /* -1: ends */
};

struct looking {
	struct pollfd *fds;
	struct watched_fd *of;
	size_t count;
};

static void add(struct looking *l, struct container *c, int fd, int which)
{
	c->refs++;
	l->of[l->count] = (struct watched_fd){c, which};
	l->fds[l->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void gather(struct keeper *k, struct looking *l, int control)
{
	l->fds[0] = (struct pollfd){.fd = k->wake, .events = POLLIN};
	l->fds[1] = (struct pollfd){.fd = control, .events = POLLIN};
	l->count = 2;
	pthread_mutex_lock(&k->lock);
	for (struct container *c = k->containers; c; c = c->next) {
		/* Who starts a command is to have noted it before its end is heard of. */
		if (c->stage == STAGE_RUNNING && !c->box_users)
			add(l, c, box_fd(c->box), -1);
		for (int i = 0; i < 2; i++)
			if (c->from_first[i] >= 0 && output_room(c) && c->stage != STAGE_STARTING)
				add(l, c, c->from_first[i], i);
	}
	pthread_mutex_unlock(&k->lock);
}

static void on_ready(struct keeper *k, const struct looking *l)
{
	pthread_mutex_lock(&k->lock);
	for (size_t i = 2; i < l->count; i++) {
		struct container *c = l->of[i].c;

		if (l->fds[i].revents && c->stage != STAGE_GONE) {
			if (l->of[i].which >= 0)
				read_output(k, c, l->of[i].which);
			else if (c->stage == STAGE_RUNNING && !c->box_users)
				read_exits(k, c);
		}
		state_drop(k, c);
	}
	pthread_mutex_unlock(&k->lock);
}

static void drain(int fd)
{
	uint64_t count;
	ssize_t n = read(fd, &count, sizeof(count));

	(void)n;
}

/* The supervisor says nothing; its end of the socket goes when it is time to end. */
static void serve(struct keeper *k, int control)
{
	size_t most = 2 + 3 * (size_t)k->conf->sandboxes;
	struct looking l = {.fds = calloc(most, sizeof(*l.fds)), .of = calloc(most, sizeof(*l.of))};

	while (l.fds && l.of) {
		gather(k, &l, control);
		if (poll(l.fds, l.count, -1) < 0)
			for (size_t i = 0; i < l.count; i++)
				l.fds[i].revents = 0;
		if (l.fds[0].revents)
			drain(k->wake);
		on_ready(k, &l);
		if (l.fds[1].revents)
			break;
		end_boxes(k);
		remove_ended(k);
	}
	free(l.fds);
	free(l.of);
}

/* --- begin and end --- */

static int remove_one(void *arg, const struct fence_entry *e, struct err *err)
{
	return fence_remove(arg, e->name, true, err);
}

static int remove_folders(const struct keeper_conf *conf, struct err *err)
{
	struct fence state = {.root = conf->state};

	return fence_list(&state, "/", 1000000, remove_one, &state, err);
}

/* What a keeper of before has left: groups, and folders of programs without walls. */
static int clean_up(const struct keeper_conf *conf, struct err *err)
{
	int count = box_clean(conf->cgroups, conf->cgroup_count, KEEPER_BOX_PREFIX, err);

	if (count < 0)
		return -1;
	if (count)
		log_line("%d sandboxes of before were ended", count);
	return remove_folders(conf, err);
}

static void end_all(struct keeper *k)
{
	pthread_mutex_lock(&k->lock);
	for (struct container *c = k->containers; c; c = c->next) {
		c->removing = true;
		if (c->stage == STAGE_RUNNING)
			c->stage = STAGE_ENDING;
	}
	pthread_mutex_unlock(&k->lock);
	end_boxes(k);
}

static void describe(struct keeper *k)
{
	struct hash h;
	char hex[HASH_HEX_LEN + 1];
	struct buf text;

	uname(&k->host);
	k->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	k->memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	snprintf(k->user, sizeof(k->user), "%u:%u", geteuid(), getegid());
	buf_init(&text, 1 << 20);
	for (size_t i = 0; k->conf->read_only[i]; i++)
		buf_printf(&text, "%s\n", k->conf->read_only[i]);
	h = hash_of(buf_span(&text));
	buf_fini(&text);
	hash_hex(&h, hex);
	snprintf(k->image_id, sizeof(k->image_id), "sha256:%s", hex);
	k->cgroup_version = "1";
	for (size_t i = 0; i < k->conf->cgroup_count; i++)
		if (k->conf->cgroups[i].controller == BOX_CGROUP_V2)
			k->cgroup_version = "2";
}

static int prepare(struct keeper *k, struct err *err)
{
	int missing;

	jv_init();
	signal(SIGPIPE, SIG_IGN);
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->wake < 0)
		return err_sys(err, "make an event descriptor");
	if (clean_up(k->conf, err) < 0)
		return -1;
	missing = box_missing(k->conf->launcher, k->missing, sizeof(k->missing), err);
	if (missing < 0)
		return -1;
	k->confined_works = !missing;
	if (missing)
		log_line("local sandboxes cannot be confined here, so none is: %s", k->missing);
	describe(k);
	return 0;
}

int keeper_run(const struct keeper_conf *conf, int control, struct err *err)
{
	static struct keeper k;
	struct httpd *server;

	k = (struct keeper){.conf = conf, .wake = -1};
	pthread_mutex_init(&k.lock, NULL);
	pthread_cond_init(&k.changed, NULL);
	if (prepare(&k, err) < 0 || privs_filter(ROLE_KEEPER, err) < 0 ||
	    server_start(&k, &server, err) < 0 || io_send_fds(control, 'y', NULL, 0, err) < 0)
		return -1;
	serve(&k, control);
	end_all(&k);
	return 0; /* connections end with the process */
}
