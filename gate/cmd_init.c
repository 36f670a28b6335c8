/*
 * cmd_init.c - writes a first configuration: profiles, configuration and what the
 * clients must be told, into a new folder.  Nothing that exists is written over.
 */
#include "gate/command.h"

#include "gate/base/io.h"
#include "gate/base/nearest.h"
#include "gate/init.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX    (256u << 10)
#define CLIENTS_MAX 32
#define RUN         "/run/sallyport"
#define INSIDE      "/run/docker" /* where a client's container sees the folder of its socket */

enum how { COMMAND_LINE, ENVIRONMENT_VARIABLE, OF_A_SHELL, IN_WORDS };

static const struct client {
	const char *name, *profile, *own;
	enum how how;
	const char *with;
} clients[] = {
#define OWN_SOCKET                            "own"
#define COMMAND                               COMMAND_LINE
#define ENVIRONMENT                           ENVIRONMENT_VARIABLE
#define SHELL                                 OF_A_SHELL
#define NOTE                                  IN_WORDS
#define CLIENT(name, profile, own, how, with) {name, profile, own, how, with},
#include "gate/init.def"
#undef CLIENT
};
#define CLIENTS (sizeof(clients) / sizeof(*clients))

struct init {
	const char *folder;
	const struct client *chosen[CLIENTS_MAX];
	size_t count;
	const char *socket; /* the engine's */
};

/* --- what was asked for --- */

static const struct client *client_find(struct span name, struct err *err)
{
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(name);

	for (size_t i = 0; i < CLIENTS; i++) {
		if (span_is(name, clients[i].name))
			return &clients[i];
		nearest_offer(&near, clients[i].name);
	}
	err_set(err, ERR_INPUT,
		"there is no profile for '%.*s'%s; 'sallyport help clients' lists them",
		SPAN_FMT(name), nearest_text(&near, hint));
	return NULL;
}

static int choose(struct init *in, const char *names, struct err *err)
{
	struct span rest = span_of(names), name;

	while (rest.len) {
		const struct client *c;

		span_cut(&rest, ',', &name);
		c = client_find(name, err);
		if (!c)
			return -1;
		for (size_t i = 0; i < in->count; i++)
			if (in->chosen[i] == c)
				return err_set(err, ERR_INPUT, "'%s' is named twice", c->name);
		if (in->count == CLIENTS_MAX)
			return err_set(err, ERR_INPUT, "more than %d clients", CLIENTS_MAX);
		in->chosen[in->count++] = c;
	}
	return in->count ? 0 : err_set(err, ERR_INPUT, "name the clients: --for traefik,portainer");
}

/* --- texts --- */

/*
 * Clients in containers get the folder of their socket mounted, below one that only root may enter.
 * Who works on the host has to get into the folder: its group says who may.
 */
static void socket_path(const struct client *c, char *out, size_t size)
{
	snprintf(out, size, RUN "%s%s/docker.sock", c->how == OF_A_SHELL ? "-" : "/", c->name);
}

static void write_listener(struct buf *out, const struct client *c)
{
	char path[128];

	socket_path(c, path, sizeof(path));
	if (c->how == OF_A_SHELL && !*c->own) {
		buf_printf(out,
			   "\n-- Each user of the host is somebody of his own here.  One that "
			   "mounts of the\n"
			   "-- profile mean by {identity.name} needs a name:\n"
			   "-- identity \"ann\" { uid = \"ann\", profile = \"%s\" }, and "
			   "identities = { \"ann\" } below.\n"
			   "listener \"%s\" { socket = \"%s\", mode = \"0666\", otherwise = \"%s\" "
			   "}\n",
			   c->profile, c->name, path, c->profile);
		return;
	}
	buf_printf(out, "\nidentity \"%s\" { profile = \"%s\"%s%s%s }\n", c->name, c->profile,
		   *c->own ? ", own_socket = \"" : "", *c->own ? c->name : "",
		   *c->own ? "-own\"" : "");
	buf_printf(out, "listener \"%s\" { socket = \"%s\", mode = \"0666\", as = \"%s\" }\n",
		   c->name, path, c->name);
	if (*c->own)
		buf_printf(out,
			   "listener \"%s-own\" { socket = \"" RUN
			   "/own/%s.sock\", mode = \"0666\", as = \"%s\" }\n",
			   c->name, c->name, c->name);
}

static void write_config(struct buf *out, const struct init *in)
{
	buf_printf(
		out,
		"-- Made by `sallyport init`.  `sallyport help config` has every word and key.\n\n"
		"log      { dir = \"/var/log/sallyport\" }\n"
		"profiles { \"profiles\" }          -- the folder beside this file\n"
		"backend  \"engine\" { kind = \"docker\", address = \"unix://%s\", files = "
		"\"same_host\" }\n\n"
		"-- For `sallyport status` and `reload`.  Not in a folder that a container gets: "
		"root "
		"there\n"
		"-- is root here, and may all that this socket offers.\n"
		"admin    { socket = \"" RUN "/admin.sock\" }\n\n"
		"-- Whoever can open a socket below is that client.  " RUN
		" itself is for root alone\n"
		"-- (mode 0700): the folder of each socket is mounted into its client's "
		"container.\n",
		in->socket);
	for (size_t i = 0; i < in->count; i++)
		write_listener(out, in->chosen[i]);
}

static void write_with(struct buf *out, const char *with, const char *socket)
{
	const char *at = strstr(with, "%s");

	buf_put(out, with, (size_t)(at - with));
	buf_puts(out, socket);
	buf_puts(out, at + 2);
}

static void write_service(struct buf *out, const struct client *c)
{
	buf_printf(out, "  %s:\n", c->name);
	if (c->how == IN_WORDS) {
		buf_puts(out, "    # ");
		write_with(out, c->with, INSIDE "/docker.sock");
		buf_puts(out, "\n");
	} else {
		buf_printf(out, "    %s: ['", c->how == COMMAND_LINE ? "command" : "environment");
		write_with(out, c->with, INSIDE "/docker.sock");
		buf_puts(out, "']\n");
	}
	buf_printf(out, "    volumes: ['" RUN "/%s:" INSIDE ":ro']\n", c->name);
}

static void write_compose(struct buf *out, const struct init *in)
{
	size_t services = 0;
	char path[128];

	buf_puts(out, "# Made by `sallyport init`: what each client needs to be told.  Take it "
		      "over into your own\n"
		      "# file, and take the engine's socket (/var/run/docker.sock) out there.\n");
	for (size_t i = 0; i < in->count; i++) {
		const struct client *c = in->chosen[i];

		if (c->how != OF_A_SHELL)
			continue;
		socket_path(c, path, sizeof(path));
		buf_printf(out, "# %s runs on the host: export ", c->name);
		write_with(out, c->with, path);
		buf_puts(out, "\n");
	}
	buf_puts(out, "services:\n");
	for (size_t i = 0; i < in->count; i++)
		if (in->chosen[i]->how != OF_A_SHELL) {
			write_service(out, in->chosen[i]);
			services++;
		}
	if (!services)
		buf_puts(out, "  {}\n");
}

/* --- files --- */

static int path_in(const struct init *in, const char *name, char path[PATH_MAX], struct err *err)
{
	return snprintf(path, PATH_MAX, "%s/%s", in->folder, name) < PATH_MAX
		       ? 0
		       : err_set(err, ERR_INPUT, "the name of the folder is too long");
}

static int write_file(const struct init *in, const char *name, struct span text, struct err *err)
{
	char path[PATH_MAX];
	int fd, rc;

	if (path_in(in, name, path, err) < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(err, "make %s", path);
	rc = io_write_all(fd, text.at, text.len, err);
	if (close(fd) < 0 && rc == 0)
		rc = err_sys(err, "write %s", path);
	if (rc < 0)
		return err_wrap(err, "%s", path);
	printf("%s\n", path);
	return 0;
}

static int make_folders(const struct init *in, struct err *err)
{
	char path[PATH_MAX];

	if (path_in(in, "profiles", path, err) < 0)
		return -1;
	if (mkdir(in->folder, 0755) < 0)
		return err_sys(err,
			       errno == EEXIST ? "make %s: init writes into a new folder (--dir)"
					       : "make %s",
			       in->folder);
	return mkdir(path, 0755) < 0 ? err_sys(err, "make %s", path) : 0;
}

static int write_text(const struct init *in, const char *name,
		      void (*write)(struct buf *out, const struct init *in), struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, TEXT_MAX);
	write(&text, in);
	rc = buf_spent(&text) ? err_set(err, ERR_LIMIT, "%s gets too long", name)
			      : write_file(in, name, buf_span(&text), err);
	buf_fini(&text);
	return rc;
}

static const struct shipped_file *shipped(const char *name)
{
	for (size_t i = 0; i < shipped_file_count; i++)
		if (strcmp(shipped_files[i].name, name) == 0)
			return &shipped_files[i];
	return NULL;
}

static int write_profiles(const struct init *in, struct err *err)
{
	for (size_t i = 0; i < in->count; i++) {
		const struct shipped_file *p = shipped(in->chosen[i]->profile);
		char name[128];

		if (!p)
			return err_set(err, ERR_INPUT, "there is no profile '%s'",
				       in->chosen[i]->profile);
		snprintf(name, sizeof(name), "profiles/%s.lua", p->name);
		if (write_file(in, name, (struct span){p->text, p->len}, err) < 0)
			return -1;
	}
	return 0;
}

static void say_next(const struct init *in)
{
	bool own = false;

	printf("\nNext, as root (folders below /run are gone after a boot: see tmpfiles.d(5)):\n"
	       "  mkdir -m 0700 " RUN "\n");
	for (size_t i = 0; i < in->count; i++) {
		if (in->chosen[i]->how == OF_A_SHELL)
			printf("  mkdir -m 0750 " RUN "-%s; chgrp GROUP " RUN
			       "-%s   # who may use it\n",
			       in->chosen[i]->name, in->chosen[i]->name);
		else
			printf("  mkdir " RUN "/%s\n", in->chosen[i]->name);
		own = own || *in->chosen[i]->own;
	}
	if (own)
		printf("  mkdir " RUN "/own\n");
	printf("  for u in worker audit resolve admin; do useradd --system --user-group "
	       "--no-create-home "
	       "--shell /usr/sbin/nologin sallyport-$u; done   # unless they exist\n");
	printf("  sallyport doctor --config %s/sallyport.conf\n"
	       "  sallyport serve --config %s/sallyport.conf\n"
	       "Read the profiles before: what they list is an example of yours.\n",
	       in->folder, in->folder);
}

/* --- the two ways --- */

static const struct client from_env = {"from-env", "from-env", "", ENVIRONMENT_VARIABLE,
				       "DOCKER_HOST=unix://%s"};

static const char *variable(const char *name)
{
	return getenv(name);
}

static int init_from_env(struct init *in, struct err *err)
{
	const char *socket = getenv("SOCKET_PATH");
	struct buf profile;
	int rc;

	in->chosen[in->count++] = &from_env;
	if (socket && (*socket != '/' || strpbrk(socket, "\"\\\n")))
		return err_set(err, ERR_INPUT,
			       "the variable SOCKET_PATH is '%.100s': no absolute path", socket);
	if (socket)
		in->socket = socket;
	buf_init(&profile, TEXT_MAX);
	rc = init_env_profile(variable, &profile, err);
	if (rc == 0)
		rc = make_folders(in, err);
	if (rc == 0)
		rc = write_file(in, "profiles/from-env.lua", buf_span(&profile), err);
	if (rc == 0)
		printf("\n%.*s\n", SPAN_FMT(buf_span(&profile)));
	buf_fini(&profile);
	return rc;
}

static int init_for(struct init *in, const char *names, struct err *err)
{
	if (choose(in, names, err) < 0 || make_folders(in, err) < 0)
		return -1;
	return write_profiles(in, err);
}

int run_init(const struct args *args)
{
	struct init in = {.folder = args->dir ? args->dir : "sallyport",
			  .socket = "/var/run/docker.sock"};
	struct err err = {0};
	int rc;

	if (!args->clients == !args->from_env)
		rc = err_set(&err, ERR_INPUT, "say --for CLIENT,... or --from-env: one of them");
	else
		rc = args->clients ? init_for(&in, args->clients, &err) : init_from_env(&in, &err);
	if (rc == 0)
		rc = write_text(&in, "sallyport.conf", write_config, &err);
	if (rc == 0)
		rc = write_text(&in, "compose.yaml", write_compose, &err);
	if (rc < 0)
		return command_failed(&err);
	say_next(&in);
	return EXIT_YES;
}
