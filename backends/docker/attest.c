/*
 * What the kernel says of a container that was just started, beside what was
 * judged.  The engine is asked for the pid, the resolver for what runs under it.
 *
 * A difference kills the container.  What could not be seen is listed, and kills
 * it only where the profile wants to have seen everything (isolation.attested),
 * or where somebody else could have exchanged a mount.  What the runtime cannot
 * show at all is listed apart: gVisor's workload has its privileges inside the
 * sandbox, and the host's kernel knows nothing of them.
 */
#include "backends/docker/attest_priv.h"

#include <string.h>

/*
 * A process that has ended, while the engine does not know it yet; a runtime that has
 * not handed over yet; and what is not to be seen any more, since it ends.  Most are
 * over at once; on a busy host they take their time.
 */
#define ROUNDS_AT_ONCE 2
#define ROUNDS_MAX     10
#define WAITS_AT_ONCE  5
#define WAITS_MAX      9

/* --- lists --- */

static void note(const struct docker_attesting *at, const char *list, const char *what)
{
	struct jv *found = (struct jv *)jv_get(at->ret, list);

	if (!found)
		found = jv_set(at->call->arena, at->ret, list, jv_array());
	jv_push(at->call->arena, found, jv_string(what));
}

void docker_differs(const struct docker_attesting *at, const char *field, const char *seen,
		    const char *judged)
{
	struct violation *v = docker_refuse(at->call, REASON_attestation_failed, field, seen);

	v->text = docker_text(at->call, "%s: the kernel shows %s; %s was judged", field, seen,
			      judged);
	note(at, "differs", field);
}

void docker_not_seen(const struct docker_attesting *at, const char *what)
{
	note(at, "unknown", what);
}

void docker_never_seen(const struct docker_attesting *at, const char *what)
{
	docker_state(at->call)->attest.in_vain = true;
	docker_not_seen(at, what);
}

static void not_shown(const struct docker_attesting *at, const char *what)
{
	note(at, "not_shown", what);
}

static void copy(const struct docker_attesting *at, const char *key)
{
	const struct jv *v = docker_told(at->seen, key);

	if (v)
		jv_set(at->call->arena, at->ret, key, *v);
}

/* --- namespaces --- */

/* How one was judged: "", or the word of the request. */
static const char *judged_namespace(const struct jv *facts, const char *name)
{
	const struct jv *list = jv_get(facts, "namespaces");
	bool is_net = strcmp(name, "net") == 0;

	if (is_net)
		return jv_str(jv_get(facts, "network"), "mode", "");
	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(jv_str(&list->items[i], "name", ""), name) == 0)
			return jv_str(&list->items[i], "mode", "");
	return "";
}

/* Those in names must not be the host's, unless that, or somebody else's, was judged. */
static void compare_namespaces(const struct docker_attesting *at, const char *const *names)
{
	const struct jv *seen = jv_get(at->seen, "namespaces");

	for (; *names; names++) {
		const struct jv *one = docker_told(seen, *names);
		const char *judged = judged_namespace(at->facts, *names);

		if (strcmp(judged, "host") == 0 || strcmp(judged, "container") == 0)
			continue;
		if (!one)
			docker_not_seen(at, docker_text(at->call, "namespaces.%s", *names));
		else if (jv_true(one, "host"))
			docker_differs(at, docker_text(at->call, "namespaces.%s", *names),
				       "the host's", "one of its own");
	}
}

/* --- limits --- */

static void compare_limit(const struct docker_attesting *at, const char *fact, const char *field,
			  const struct jv *seen, int64_t most)
{
	int64_t judged = jv_num(jv_get(at->facts, "limits"), fact, 0);

	if (judged <= 0)
		return;
	if (!seen || seen->kind != JV_INT)
		docker_not_seen(at, docker_text(at->call, "limits.%s", fact));
	else if (seen->i < 0 || seen->i > most)
		docker_differs(at, field,
			       seen->i < 0 ? "no limit"
					   : docker_text(at->call, "%lld", (long long)seen->i),
			       docker_text(at->call, "%lld", (long long)judged));
}

/* Billionths of a processor; the engine rounds to thousandths of a period. */
static struct jv cpus_of(const struct jv *group)
{
	int64_t quota = jv_num(group, "cpu_quota", -2), period = jv_num(group, "cpu_period", 0);

	if (quota == -1)
		return jv_int(-1);
	if (quota < 0 || period <= 0 || quota > INT64_MAX / 1000000000)
		return jv_null();
	return jv_int(quota * 1000000000 / period);
}

static void compare_limits(const struct docker_attesting *at)
{
	const struct jv *limits = jv_get(at->facts, "limits");
	bool own = strcmp(jv_str(at->seen, "belongs", ""), "cgroup") == 0;
	const struct jv *group = own ? jv_get(at->seen, "cgroup") : NULL;
	struct jv cpus = cpus_of(group);

	compare_limit(at, "memory", "HostConfig.Memory", jv_get(group, "memory"),
		      jv_num(limits, "memory", 0));
	compare_limit(at, "pids", "HostConfig.PidsLimit", jv_get(group, "pids"),
		      jv_num(limits, "pids", 0));
	compare_limit(at, "nano_cpus", "HostConfig.NanoCpus", &cpus,
		      jv_num(limits, "nano_cpus", 0) + 10000000);
	if (own)
		copy(at, "cgroup");
}

/* --- ordinary containers --- */

static enum isolation attest_process(const struct docker_attesting *at)
{
	static const char *const own[] = {"mnt", "pid", "net", "ipc", "uts", NULL};

	not_shown(at, "runtime"); /* it has ended once the workload runs */
	docker_attest_capabilities(at);
	if (docker_expects_filter(at) && jv_num(at->seen, "seccomp", -1) == 0 &&
	    docker_is_runtime_still(at->seen))
		docker_not_seen(at, "seccomp");
	else if (docker_expects_filter(at))
		docker_attest_seccomp(at);
	docker_attest_no_new_privs(at);
	compare_namespaces(at, own);
	compare_limits(at);
	return ISOLATION_PROCESS;
}

/* --- gVisor --- */

static const struct docker_runtime *judged_runtime(const struct docker_attesting *at)
{
	const struct docker_info *info = docker_state(at->call)->info;
	const char *name = jv_str(jv_get(at->facts, "isolation"), "runtime", "");

	for (size_t i = 0; i < info->runtime_count; i++)
		if (strcmp(info->runtimes[i].name, name) == 0)
			return &info->runtimes[i];
	return NULL;
}

/* The flags of the process between its name and its subcommand. */
static struct jv flags_of(const struct docker_attesting *at, const char **ret_command)
{
	const struct jv *args = jv_get(at->seen, "args");
	struct jv flags = jv_array();

	*ret_command = "";
	for (size_t i = 1; args && args->kind == JV_ARRAY && i < args->count; i++) {
		struct span arg = args->items[i].kind == JV_STRING ? args->items[i].str
								   : (struct span){"", 0};

		if (arg.len && arg.at[0] == '-')
			jv_push(at->call->arena, &flags, args->items[i]);
		else
			*ret_command = arg.at;
	}
	return flags;
}

static bool has_flag(const struct jv *flags, const char *name)
{
	for (size_t i = 0; i < flags->count; i++)
		if (span_starts(flags->items[i].str, name))
			return true;
	return false;
}

/* The same table that the engine's arguments are judged by. */
static enum isolation weigh(const struct docker_attesting *at, struct jv flags)
{
	const struct docker_runtime *judged = judged_runtime(at);
	struct docker_runtime seen;
	struct jv doc = jv_object();
	enum isolation level = ISOLATION_KERNEL;

	jv_set(at->call->arena, &doc, "path", jv_string("runsc"));
	jv_set(at->call->arena, &doc, "runtimeArgs", flags);
	docker_read_runtime(at->call->arena, "", &doc, &seen);
	for (size_t i = 0; i < seen.is.line_count; i++) {
		const struct isolation_line *low = &seen.is.lines[i];

		if (low->unknown && !docker_state(at->call)->flavor->args_are_hidden)
			docker_never_seen(at, docker_text(at->call, "flag --%s", low->field));
		else if (low->alone < level)
			level = low->alone;
	}
	if (judged && level < judged->is.level)
		docker_differs(
			at, "HostConfig.Runtime",
			docker_text(at->call, "flags that leave it %s", isolation_name(level)),
			isolation_name(judged->is.level));
	return level;
}

static void list_hidden(const struct docker_attesting *at, const struct jv *flags)
{
	static const char *const inside[] = {"capabilities", "seccomp of the workload",
					     "no_new_privs", "namespaces.pid", "mounts.read_only"};

	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		not_shown(at, inside[i]);
	if (has_flag(flags, "--ignore-cgroups"))
		not_shown(at, "limits");
	else
		compare_limits(at);
}

static enum isolation attest_sandbox(const struct docker_attesting *at)
{
	static const char *const own[] = {"mnt", "net", "ipc", "uts", NULL};
	const struct jv *runtime = docker_told(at->seen, "runtime");
	const char *command;
	struct jv flags = flags_of(at, &command);

	if (!runtime || jv_true(jv_get(at->seen, "exe"), "deleted")) {
		docker_not_seen(at, "runtime"); /* or it was replaced since it was started */
		return ISOLATION_NONE;
	}
	copy(at, "runtime");
	if (!jv_true(runtime, "same") || strcmp(command, "boot") != 0) {
		docker_differs(at, "HostConfig.Runtime",
			       jv_str(jv_get(at->seen, "exe"), "path", "another program"),
			       "a sandbox of the runtime's own program");
		return ISOLATION_PROCESS;
	}
	jv_set(at->call->arena, at->ret, "flags", flags);
	docker_attest_seccomp(at); /* the sandbox's own */
	compare_namespaces(at, own);
	list_hidden(at, &flags);
	return weigh(at, flags);
}

/* --- together --- */

static void say_level(const struct docker_attesting *at, enum isolation level)
{
	enum isolation judged = ISOLATION_NONE;
	const char *text = jv_str(jv_get(at->facts, "isolation"), "level", "");

	/* What the request lowers is lowered, whatever runs it. */
	if (isolation_find(span_of(text), &judged) == 0 && judged < level)
		level = judged;
	jv_set(at->call->arena, at->ret, "level", jv_string(isolation_name(level)));
}

static void compare(const struct docker_attesting *at)
{
	static const char *const copied[] = {"pid",          "pid",     "start",      "uid",
					     "gid",          "uid_map", "seccomp",    "filters",
					     "no_new_privs", "caps",    "namespaces", "label"};
	const char *base = jv_str(jv_get(at->facts, "isolation"), "base", "");
	enum isolation level = ISOLATION_NONE;

	for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
		copy(at, copied[i]);
	/* Without walls there are none to be seen, and nothing less than what was judged. */
	if (strcmp(jv_str(at->facts, "host_tools", ""), "bare") == 0) {
		say_level(at, ISOLATION_NONE);
		return;
	}
	if (!*jv_str(at->seen, "belongs", ""))
		docker_not_seen(at, "whether the process is the container's");
	if (strcmp(base, "process") == 0)
		level = attest_process(at);
	else if (strcmp(base, "kernel") == 0)
		level = attest_sandbox(at);
	else
		docker_never_seen(at, "the runtime is of a kind that cannot be looked into");
	docker_attest_mounts(at);
	say_level(at, level);
}

/* --- asking --- */

static void begin(struct backend_call *call, const char *by, const char *state)
{
	call->attestation = jv_object();
	jv_set(call->arena, &call->attestation, "level", jv_string("unknown"));
	jv_set(call->arena, &call->attestation, "by", jv_string(by));
	jv_set(call->arena, &call->attestation, "state", jv_string(state));
}

/* Of a service that does not show a sandbox's arguments, only what was seen holds so well. */
static bool must_be_seen(const struct backend_call *call)
{
	return call->wants_attested ||
	       (docker_state(call)->flavor->args_are_hidden && call->minimum > ISOLATION_PROCESS);
}

/* Nothing was seen at all. */
static enum step unseen(struct backend_call *call, const char *why)
{
	const struct docker_attesting at = {
		.call = call, .facts = &call->workload.facts, .ret = &call->attestation};

	begin(call, "nobody", "unknown");
	docker_not_seen(&at, why);
	docker_attest_mounts(&at);
	if (must_be_seen(call) && !call->refused.count)
		docker_refuse(call, REASON_attestation_failed, "", "")->text = why;
	return call->refused.count ? STEP_REFUSED : STEP_READY;
}

static enum step ended(struct backend_call *call)
{
	begin(call, "engine", "ended");
	return STEP_READY;
}

static const char *question_about(struct backend_call *call, const struct jv *doc, int64_t pid)
{
	const struct jv *isolation = jv_get(&call->workload.facts, "isolation");
	const char *path = jv_str(isolation, "runtime_path", "");
	struct buf text;
	const char *ret;

	buf_init(&text, 60000);
	buf_printf(&text, "pid %lld\nid %s\nruntime ", (long long)pid, call->object.id);
	if (*path == '/')
		docker_encode(&text, span_of(path), "/");
	buf_puts(&text, "\n");
	docker_attest_files(call, doc, &text);
	ret = buf_spent(&text) ? "" : docker_whole(call, buf_span(&text));
	buf_fini(&text);
	return ret;
}

/* The process is there, but the runtime has not handed over to the workload yet. */
static bool has_not_begun(struct backend_call *call, const struct jv *seen)
{
	const struct docker_attesting at = {.call = call, .facts = &call->workload.facts};
	const char *base = jv_str(jv_get(at.facts, "isolation"), "base", "");

	return strcmp(base, "process") == 0 && docker_expects_filter(&at) &&
	       jv_num(seen, "seccomp", 2) == 0;
}

static enum step judge(struct backend_call *call, const struct jv *seen)
{
	const struct docker_state *st = docker_state(call);
	const struct docker_attesting at = {.call = call,
					    .facts = &call->workload.facts,
					    .doc = &st->attest.doc,
					    .seen = seen,
					    .ret = &call->attestation};
	const struct jv *unknown;

	begin(call, "resolver", "seen");
	docker_state(call)->attest.in_vain = false;
	compare(&at);
	unknown = jv_get(&call->attestation, "unknown");
	if (call->wants_attested && unknown && unknown->count && !call->refused.count)
		docker_refuse(call, REASON_attestation_failed, "", unknown->items[0].str.at)->text =
			docker_text(call, "%s could not be seen, and the profile asks for that",
				    unknown->items[0].str.at);
	return call->refused.count ? STEP_REFUSED : STEP_READY;
}

static enum step ask_pid(struct backend_call *call)
{
	struct docker_attest *a = &docker_state(call)->attest;
	const struct lookup question = {
		.kind = LOOKUP_GET,
		.target = docker_target(call, "/containers/", span_of(call->object.id), "/json"),
		.table = "containers",
		.key = call->object.id,
		.later = a->rounds > ROUNDS_AT_ONCE,
	};
	const struct lookup *answer = docker_ask_anew(call, &question, &a->inspects);
	int64_t pid;

	if (!answer)
		return STEP_LOOKUP;
	if (answer->status == 404)
		return ended(call);
	pid = jv_num(jv_get(&answer->body, "State"), "Pid", -1);
	if (answer->status != 200 || pid < 0 ||
	    strcmp(jv_str(&answer->body, "Id", ""), call->object.id) != 0)
		return unseen(call, "the engine does not say what it started");
	if (pid == 0)
		return ended(call);
	a->doc = answer->body;
	a->question = question_about(call, &a->doc, pid);
	if (!*a->question)
		return unseen(call, "the question is longer than the resolver takes");
	a->looks = false;
	return STEP_READY;
}

/*
 * Asked again is the engine when the process has ended meanwhile, and the
 * resolver when it has not begun.
 */
static enum step look(struct backend_call *call)
{
	struct docker_attest *a = &docker_state(call)->attest;
	const struct lookup question = {.kind = LOOKUP_PROCESS,
					.target = a->question,
					.table = "processes",
					.key = call->object.id,
					.later = a->waits > WAITS_AT_ONCE};
	const struct lookup *answer = docker_ask_anew(call, &question, &a->looks);
	const char *state;

	if (!answer)
		return STEP_LOOKUP;
	state = jv_str(&answer->body, "state", "");
	if (answer->status == 200 && strcmp(state, "gone") == 0) {
		a->question = NULL;
		a->inspects = false;
		if (++a->rounds < ROUNDS_MAX)
			return docker_attest(call);
		return unseen(call, "it ended each time that it was looked at");
	}
	if (answer->status != 200 || strcmp(state, "seen") != 0)
		return unseen(call, "the resolver cannot look at it");
	if (has_not_begun(call, &answer->body) && a->waits++ < WAITS_MAX) {
		a->looks = false;
		return look(call);
	}
	if (judge(call, &answer->body) == STEP_READY)
		return STEP_READY;
	/* What could not be seen may be ending: a sandbox's helpers go before it does. */
	if (jv_get(&call->attestation, "differs") || a->in_vain || a->waits++ >= WAITS_MAX)
		return STEP_REFUSED;
	call->refused = (struct violations){.count = 0};
	a->looks = false;
	return look(call);
}

enum step docker_attest(struct backend_call *call)
{
	struct docker_attest *a = &docker_state(call)->attest;

	if (!call->sees_processes)
		return unseen(call, "the engine's processes cannot be seen from here");
	if (!docker_state(call)->info)
		return unseen(call, "nothing is known of the engine");
	if (!a->question) {
		enum step step = ask_pid(call);

		if (!a->question)
			return step;
	}
	return look(call);
}
