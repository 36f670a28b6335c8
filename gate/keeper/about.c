/* about.c - what the keeper says of itself, and of the one image that there is. */
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void route_ping(struct call *c)
{
	httpd_reply_header(c->r, "Api-Version", KEEPER_API);
	httpd_reply_header(c->r, "Ostype", "linux");
	httpd_reply_header(c->r, "Docker-Experimental", "false");
	httpd_reply(c->r, 200, "text/plain; charset=utf-8", span_of("OK"));
}

void route_version(struct call *c)
{
	struct arena *a = c->r->arena;
	struct jv doc = jv_object(), *list, *one;
	const struct utsname *host = &c->k->host;

	jv_set(a, &doc, "Version", jv_string(SALLYPORT_VERSION));
	jv_set(a, &doc, "ApiVersion", jv_string(KEEPER_API));
	jv_set(a, &doc, "MinAPIVersion", jv_string("1.24"));
	jv_set(a, &doc, "Os", jv_string("linux"));
	jv_set(a, &doc, "Arch", jv_string(host->machine));
	jv_set(a, &doc, "KernelVersion", jv_string(host->release));
	list = jv_set(a, &doc, "Components", jv_array());
	one = jv_push(a, list, jv_object());
	jv_set(a, one, "Name", jv_string("sallyport-keeper"));
	jv_set(a, one, "Version", jv_string(SALLYPORT_VERSION));
	say_json(c, 200, &doc);
}

static void add_runtime(struct arena *a, struct jv *to, const char *name, const char *path)
{
	jv_set(a, jv_set(a, to, name, jv_object()), "path", jv_string(path));
}

static void count_containers(struct call *c, struct jv *doc)
{
	int64_t running = 0, all = 0;

	pthread_mutex_lock(&c->k->lock);
	for (const struct container *x = c->k->containers; x; x = x->next) {
		running += x->stage == STAGE_RUNNING || x->stage == STAGE_ENDING;
		all++;
	}
	pthread_mutex_unlock(&c->k->lock);
	jv_set(c->r->arena, doc, "Containers", jv_int(all));
	jv_set(c->r->arena, doc, "ContainersRunning", jv_int(running));
	jv_set(c->r->arena, doc, "ContainersPaused", jv_int(0));
	jv_set(c->r->arena, doc, "ContainersStopped", jv_int(all - running));
}

/* A level that this host cannot give is not offered. */
void route_info(struct call *c)
{
	struct arena *a = c->r->arena;
	struct jv doc = jv_object(), *list;
	const struct keeper *k = c->k;

	jv_set(a, &doc, "ID", jv_string("sallyport-keeper"));
	jv_set(a, &doc, "Name", jv_string(k->host.nodename));
	jv_set(a, &doc, "ServerVersion", jv_string(SALLYPORT_VERSION));
	count_containers(c, &doc);
	jv_set(a, &doc, "Images", jv_int(1));
	jv_set(a, &doc, "Driver", jv_string("host"));
	jv_set(a, &doc, "LoggingDriver", jv_string("local"));
	jv_set(a, &doc, "CgroupDriver", jv_string("cgroupfs"));
	jv_set(a, &doc, "CgroupVersion", jv_string(k->cgroup_version));
	jv_set(a, &doc, "OSType", jv_string("linux"));
	jv_set(a, &doc, "OperatingSystem", jv_string("the host's"));
	jv_set(a, &doc, "Architecture", jv_string(k->host.machine));
	jv_set(a, &doc, "KernelVersion", jv_string(k->host.release));
	jv_set(a, &doc, "NCPU", jv_int(k->cpus));
	jv_set(a, &doc, "MemTotal", jv_int(k->memory));
	jv_set(a, &doc, "DefaultRuntime", jv_string("confined"));
	list = jv_set(a, &doc, "Runtimes", jv_object());
	if (k->confined_works)
		add_runtime(a, list, "confined", "sallyport-confined");
	if (k->conf->bare)
		add_runtime(a, list, "bare", "sallyport-bare");
	list = jv_set(a, &doc, "SecurityOptions", jv_array());
	jv_push(a, list, jv_string("name=seccomp,profile=default"));
	jv_push(a, list, jv_string("name=no-new-privileges"));
	list = jv_set(a, &doc, "Warnings", jv_array());
	if (!k->confined_works)
		jv_push(a, list, jv_string(k->missing));
	jv_set(a, jv_set(a, &doc, "Swarm", jv_object()), "LocalNodeState", jv_string("inactive"));
	say_json(c, 200, &doc);
}

/* --- events --- */

/* Until the caller goes. */
static ssize_t no_events(struct httpd_request *r, char *at, size_t room)
{
	struct pollfd fd = {.fd = r->fd, .events = POLLRDHUP};

	if (room)
		*at = '\0'; /* it is never sent */
	while (poll(&fd, 1, -1) < 0 && errno == EINTR)
		;
	return -1;
}

/*
 * Nothing happens here that no worker has asked for, since nobody else can: so there is nothing to
 * tell. The stream is there to end with the keeper, so that the gate notices.
 */
void route_events(struct call *c)
{
	httpd_reply_stream(c->r, 200, "application/json", -1, no_events);
}

/* --- the image --- */

static struct jv image_of(const struct keeper *k, struct arena *a)
{
	struct jv doc = jv_object(), *list;

	jv_set(a, &doc, "Id", jv_string(k->image_id));
	list = jv_set(a, &doc, "RepoTags", jv_array());
	jv_push(a, list, jv_string(KEEPER_IMAGE ":latest"));
	jv_set(a, &doc, "RepoDigests", jv_array());
	jv_set(a, &doc, "Size", jv_int(0));
	return doc;
}

void route_images(struct call *c)
{
	struct arena *a = c->r->arena;
	struct jv list = jv_array();
	struct jv *one = jv_push(a, &list, image_of(c->k, a));

	jv_set(a, one, "ParentId", jv_string(""));
	jv_set(a, one, "Created", jv_int(0));
	jv_set(a, one, "SharedSize", jv_int(-1));
	jv_set(a, one, "Containers", jv_int(-1));
	jv_set(a, one, "Labels", jv_object());
	say_json(c, 200, &list);
}

void route_image(struct call *c)
{
	struct arena *a = c->r->arena;
	struct jv doc = image_of(c->k, a), *config, *volumes;

	if (strcmp(c->name, KEEPER_IMAGE) != 0 && strcmp(c->name, KEEPER_IMAGE ":latest") != 0 &&
	    strcmp(c->name, c->k->image_id) != 0 &&
	    strcmp(c->name, c->k->image_id + sizeof("sha256:") - 1) != 0) {
		say(c, 404, "No such image: %.200s", c->name);
		return;
	}
	jv_set(a, &doc, "Created", jv_string("1970-01-01T00:00:00Z"));
	jv_set(a, &doc, "Os", jv_string("linux"));
	jv_set(a, &doc, "Architecture", jv_string(c->k->host.machine));
	config = jv_set(a, &doc, "Config", jv_object());
	jv_set(a, config, "User", jv_string(c->k->user));
	jv_set(a, config, "Env", jv_array());
	jv_set(a, config, "Cmd", jv_null());
	jv_set(a, config, "Labels", jv_null());
	volumes = jv_set(a, config, "Volumes", jv_object());
	for (size_t i = 0; c->k->conf->read_only[i]; i++)
		jv_set(a, volumes, c->k->conf->read_only[i], jv_object());
	say_json(c, 200, &doc);
}
