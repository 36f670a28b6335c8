#include "gate/command.h"

#include "gate/base/jv.h"
#include "gate/doctor.h"
#include "gate/quota_status.h"
#include "gate/serve.h"
#include "gate/status_ask.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)32 << 20)

void finding_add(struct findings *f, enum finding_level level, const char *why, const char *mend,
		 const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (f->count == FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f->list[f->count] =
		(struct finding){level, arena_strndup(f->arena, text, strlen(text)), why, mend};
	if (f->list[f->count].what)
		f->count++;
}

/* A container's root is uid 0 for whoever asks the kernel, unless the engine maps users. */
static void check_admin_folder(struct findings *f)
{
	const char *listener = config_beside_admin(f->config);

	if (listener)
		finding_add(
			f, FINDING_WEAK,
			"Where this folder is mounted into a container, its root is root here, and "
			"may reload and make listeners.",
			"admin { socket = ... } in a folder that no container gets.",
			"the admin socket %s lies in the folder of listener '%s', which containers "
			"use",
			f->config->status_socket, listener);
}

static void check_folder_of(struct findings *f, const char *path)
{
	char copy[4096];
	const char *folder;
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	folder = dirname(copy);
	if (stat(folder, &st) < 0 && errno == EACCES)
		finding_add(f, FINDING_NOTE, "It could not be looked at.",
			    "Run this as the user that starts the gate.",
			    "the folder %s of the socket %s: %s", folder, path, strerror(errno));
	else if (stat(folder, &st) < 0)
		finding_add(f, FINDING_WEAK, "The gate does not start.",
			    "Make the folder (RuntimeDirectory= in a systemd unit).",
			    "the folder %s of the socket %s: %s", folder, path, strerror(errno));
	else if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
		finding_add(f, FINDING_WEAK,
			    "Anybody could put another socket in the place of the gate's.",
			    "chmod o-w it.", "the folder %s can be written by everybody", folder);
}

/* Whether every folder on the way to it may be entered by everybody. */
static bool is_open_to_all(const char *path)
{
	char copy[4096];
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	while (strcmp(copy, "/") != 0 && strcmp(copy, ".") != 0) {
		dirname(copy);
		if (stat(copy, &st) == 0 && !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

static void check_rules_file(struct findings *f, const char *path)
{
	static const char why[] = "Whoever can write it decides what is allowed.";
	struct stat st;

	if (stat(path, &st) < 0)
		return; /* it was read a moment ago */
	if (st.st_mode & S_IWOTH)
		finding_add(f, FINDING_WEAK, why, "chmod o-w it.", "%s can be written by everybody",
			    path);
	else if (st.st_uid != 0 && st.st_uid != geteuid())
		finding_add(f, FINDING_WEAK, why, "chown it to root.", "%s belongs to uid %u", path,
			    st.st_uid);
}

void doctor_config(struct findings *f)
{
	const struct config *c = f->config;

	check_rules_file(f, c->path);
	for (size_t i = 0; c->profile_paths && c->profile_paths[i]; i++)
		check_rules_file(f, c->profile_paths[i]);
	for (size_t i = 0; i < c->proxy.listener_count; i++) {
		if (*c->listeners[i].socket)
			check_folder_of(f, c->listeners[i].socket);
		if (!*c->listeners[i].tcp && (c->access[i].mode & 02) &&
		    *c->listeners[i].otherwise && is_open_to_all(c->listeners[i].socket))
			finding_add(f, FINDING_NOTE,
				    "Every process of this host may ask, under that profile.",
				    "Give the listener a group and mode 0660, or its folder.",
				    "listener '%s' can be opened by everybody (mode %04o)",
				    c->listeners[i].name, c->access[i].mode);
	}
	check_folder_of(f, c->status_socket);
	check_admin_folder(f);
	if (*c->admin.sockets)
		check_folder_of(f, c->admin.sockets);
	if (c->admin.access.mode & 02)
		finding_add(f, FINDING_NOTE,
			    "Who has no role is refused, but can take others' turns.",
			    "admin { group = ... } and mode 0660.",
			    "the admin socket can be opened by everybody (mode %04o)",
			    c->admin.access.mode);
	for (size_t i = 0; i < c->proxy.backend_count; i++)
		if (!c->proxy.backends[i].sees_files)
			finding_add(f, FINDING_NOTE,
				    "Mount sources are judged by their text alone, and only under "
				    "profiles that say that this is enough.",
				    "files = \"same_host\", if the engine runs on this host.",
				    "backend '%s' has files = \"none\"", c->proxy.backends[i].name);
}

static void doctor_emergency(struct findings *f, const struct jv *status)
{
	const struct jv *list = jv_get(status, "quarantines");

	if (list && !jv_true(status, "quarantines_known"))
		finding_add(f, FINDING_WEAK, "All is refused.",
			    "Mend or remove emergency.json in admin { state }, and start the gate "
			    "again.",
			    "the gate does not know who is under quarantine");
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		finding_add(f, FINDING_NOTE, "All that it asks for is refused.",
			    "sallyport quarantine NAME --release --ticket TICKET, when it is over.",
			    "%s is under quarantine, ticket %s",
			    jv_str(&list->items[i], "owner", "?"),
			    jv_str(&list->items[i], "ticket", "?"));
	list = jv_get(status, "modes");
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		finding_add(f, FINDING_WEAK,
			    "What its rules refuse passes, with a warning on record.",
			    "sallyport mode PROFILE enforce --ticket TICKET ends it before its "
			    "time.",
			    "profile %s only warns for a while, ticket %s",
			    jv_str(&list->items[i], "profile", "?"),
			    jv_str(&list->items[i], "ticket", "?"));
}

#define QUOTAS_SHOWN 16
#define QUOTA_NEAR   90 /* hundredths */

static void doctor_quotas(struct findings *f, const struct jv *status)
{
	const struct jv *list = jv_get(status, "quotas");
	size_t count = list && list->kind == JV_ARRAY ? list->count : 0;
	int64_t more = jv_num(status, "quotas_more", 0);

	for (size_t i = 0; i < count && i < QUOTAS_SHOWN; i++) {
		bool near = jv_num(&list->items[i], "percent", 0) >= QUOTA_NEAR;
		struct buf text;

		buf_init(&text, 900);
		quota_status_say(&list->items[i], (int64_t)time(NULL), &text);
		finding_add(f, near ? FINDING_NOTE : FINDING_FINE,
			    near ? "What does not fit any more is refused." : "",
			    near ? "A higher quota in the profile, if it is too small." : "",
			    "quota of %.*s", SPAN_FMT(buf_span(&text)));
		buf_fini(&text);
	}
	if (count > QUOTAS_SHOWN)
		more += (int64_t)(count - QUOTAS_SHOWN);
	if (more)
		finding_add(f, FINDING_FINE, "", "", "and %lld more quotas, which are less full",
			    (long long)more);
}

/* A gate that runs under this configuration is asked, if there is one. */
static void doctor_running(struct findings *f)
{
	struct err err = {0};
	struct jv status;

	if (status_ask(f->config->status_socket, f->arena, &status, &err) < 0)
		return;
	doctor_emergency(f, &status);
	doctor_quotas(f, &status);
}

static const char *level_name(enum finding_level level)
{
	switch (level) {
	case FINDING_WEAK:
		return "weak";
	case FINDING_NOTE:
		return "note";
	case FINDING_FINE:
		return "fine";
	}
	return "weak";
}

static void print_text(const struct finding *d, FILE *out)
{
	struct span rest = span_of(d->why), line;

	fprintf(out, "%s  %s\n", level_name(d->level), d->what);
	while (span_cut(&rest, '\n', &line) || line.len)
		fprintf(out, "      %.*s\n", SPAN_FMT(line));
	if (*d->mend)
		fprintf(out, "      To mend it: %s\n", d->mend);
}

static void print_json(const struct findings *f, FILE *out)
{
	struct jv all = jv_array();
	struct buf text;

	for (size_t i = 0; i < f->count; i++) {
		struct jv *to = jv_push(f->arena, &all, jv_object());

		jv_set(f->arena, to, "level", jv_string(level_name(f->list[i].level)));
		jv_set(f->arena, to, "what", jv_string(f->list[i].what));
		jv_set(f->arena, to, "why", jv_string(f->list[i].why));
		jv_set(f->arena, to, "mend", jv_string(f->list[i].mend));
	}
	buf_init(&text, 1 << 20);
	jv_write(&text, &all);
	fprintf(out, "%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

/* The rest of the host can be looked at all the same. */
static void say_mistake(struct findings *f, const struct err *mistake)
{
	if (mistake)
		finding_add(
			f, FINDING_WEAK,
			"A gate that runs goes on with the one before, and none can be started; "
			"what this one names was not looked at.",
			"Correct it.", "the configuration does not load: %s", mistake->msg);
}

/* config: NULL if there is none, or if it does not load, which mistake says then. */
static int examine(const struct config *config, const struct err *mistake, bool json)
{
	static struct findings f;
	int answer = EXIT_YES;

	f = (struct findings){.arena = arena_create(ARENA_MAX), .config = config};
	if (!f.arena)
		return EXIT_CANNOT;
	say_mistake(&f, mistake);
	doctor_host(&f);
	doctor_engines(&f);
	doctor_unserved(&f);
	doctor_reach(&f);
	if (config) {
		doctor_config(&f);
		doctor_tls(&f);
		doctor_running(&f);
		doctor_sinks(&f);
	}
	for (size_t i = 0; i < f.count; i++) {
		if (f.list[i].level == FINDING_WEAK)
			answer = EXIT_NO;
		if (!json)
			print_text(&f.list[i], stdout);
	}
	if (json)
		print_json(&f, stdout);
	arena_destroy(f.arena);
	return answer;
}

int run_doctor(const struct args *args)
{
	struct err err = {0};
	struct loaded loaded;
	int answer;

	if (!args->config)
		return examine(NULL, NULL, args->json);
	if (load(args->config, &loaded, &err) < 0)
		return examine(NULL, &err, args->json);
	answer = examine(&loaded.config, NULL, args->json);
	unload(&loaded);
	return answer;
}
