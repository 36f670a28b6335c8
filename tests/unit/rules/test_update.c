/* Updates: what a container may be beside the one that it replaces. */
#include "rules/update_priv.h"
#include "tests/unit/rules/kit.h"

#include <stdio.h>
#include <stdlib.h>

static const char profiles[] =
	"return {\n"
	"profile \"up\" { operations = { \"container.run\", \"container.rename\" }, images = { "
	"\"reg.example/team/*\", \"ghcr.io/new/app\" }, isolation = { min = \"kernel\" },\n"
	"users = \"nonroot\", update = { within = \"10m\", moves = { { \"reg.example/team/app\", "
	"\"ghcr.io/new/*\" } } },\n"
	"rule(\"not-on-fridays\", { operations = { \"launch\" } }, function(req)\n"
	" if req.operation.name == \"container.create\" and req.workload.hostname == \"friday\" "
	"then deny(\"not on fridays\") end end) },\n"
	"profile \"host\" { operations = { \"container.run\", \"container.prune\" }, images = { "
	"\"**\" }, update = { "
	"privileged = true } },\n"
	"profile \"free\" { operations = { \"container.run\" }, images = { \"**\" }, isolation = { "
	"min = \"kernel\" }, networks = { \"agents\" }, mounts = { { \"/srv/ws\", \"rw\" } },\n"
	"log_drivers = { \"local\" }, update = { fresh = true, changes = { \"env\", \"labels\", "
	"\"command\" } }, labels = { \"ok.*\" } },\n"
	"profile \"counted\" { operations = { \"container.run\" }, images = { \"**\" }, isolation "
	"= { min = \"kernel\" }, update = true, quota = { containers = 1 } },\n"
	"profile \"none\" { operations = { \"container.run\" }, images = { \"**\" }, update = "
	"false },\n"
	"profile \"watching\" { operations = { \"container.run\" }, images = { \"**\" }, isolation "
	"= { min = \"kernel\" }, update = true, modes = { update = \"shadow\" } },\n"
	"profile \"excepted\" { operations = { \"container.run\" }, images = { \"**\" }, "
	"isolation = { min = \"kernel\" }, networks = { \"agents\" }, mounts = { { \"/srv/ws\", "
	"\"rw\" } }, log_drivers = { \"local\" }, update = true,\n"
	"exception { rule = \"update\", when = { backend = \"*\" }, owner = \"ann\", ticket = "
	"\"T\", reason = \"moving\", expires = \"2026-12-31\" } },\n"
	"}";

static struct engine *eng;

static int open_engine(void **state)
{
	(void)state;
	eng = kit_open(profiles);
	return 0;
}

static int close_engine(void **state)
{
	(void)state;
	engine_close(eng);
	return 0;
}

/* --- each fact has a row --- */

static const char *const facts[] = {
#define FACT(path, kind, doc) path,
#include "rules/workload.def"
#undef FACT
};

static void every_fact_has_its_row(void **state)
{
	(void)state;
	CHECK_INT("a row for each fact of workload.def, in its order",
		  sizeof(facts) / sizeof(*facts), update_row_count);
	for (size_t i = 0; i < update_row_count; i++)
		CHECK_STR("the next fact", facts[i], update_rows[i].path);
}

/* --- single facts --- */

static struct jv replacing(struct arena *a, const char *old, const char *now)
{
	struct jv all = kit_merged(a, kit_create, now), before = kit_merged(a, kit_create, old);
	struct jv replaces = jv_object();

	jv_set(a, &replaces, "name", jv_string("web"));
	jv_set(a, &replaces, "owner", jv_string("bob"));
	jv_set(a, &replaces, "by", jv_string("name"));
	jv_set(a, &replaces, "at", jv_int(1000));
	jv_set(a, &replaces, "workload", *jv_get(&before, "workload"));
	jv_set(a, &all, "replaces", replaces);
	if (!jv_get(&all, "now"))
		jv_set(a, &all, "now", jv_int(1100));
	return all;
}

struct beside {
	const char *label, *old, *now, *want, *field;
};

static void check_beside(const char *profile, const struct beside *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct kit_answer ans = {.arena = arena_create(1 << 22)};
		struct jv all = replacing(ans.arena, rows[i].old, rows[i].now);
		const struct violations *v = &ans.decision.violations;

		ans.result = engine_judge(eng, engine_profile(eng, profile), &all, ans.arena,
					  &ans.decision, &ans.err);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		if (rows[i].field) {
			CHECK_STR(rows[i].label, rows[i].field, v->list[0].field);
			CHECK_INT(rows[i].label, 1, *v->list[0].hint != '\0');
		}
		kit_drop(&ans);
	}
}

#define W(x)  "{\"workload\":{" x "}}"
#define LOOSE "update_looser"

static void nothing_may_be_looser(void **state)
{
	static const struct beside rows[] = {
		{"the same", "", "", "allow", NULL},
		{"privileged", "", W("\"privileged\":true"), LOOSE " privileged", "privileged"},
		{"as privileged as before, which the profile has no word for",
		 W("\"privileged\":true"), W("\"privileged\":true"), "privileged", NULL},
		{"a capability that was there",
		 W("\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"a\"}]}"),
		 W("\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"b\"}]}"), "allow",
		 NULL},
		{"another capability",
		 W("\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"a\"}]}"),
		 W("\"capabilities\":{\"add\":[{\"name\":\"SETUID\",\"field\":\"b\"}]}"), LOOSE,
		 "b"},
		{"no more is dropped", "", W("\"capabilities\":{\"drop\":[],\"drop_all\":false}"),
		 LOOSE, "capabilities.drop[]"},
		{"all is dropped now", W("\"capabilities\":{\"drop\":[\"MKNOD\"]}"), "", "allow",
		 NULL},
		{"a file system that can be written", W("\"read_only\":true"), "", LOOSE,
		 "read_only"},
		{"and one that no longer can", "", W("\"read_only\":true"), "allow", NULL},
		{"privileges may be gained", "", W("\"no_new_privileges\":false"), LOOSE,
		 "no_new_privileges"},
		{"less isolation", W("\"isolation\":{\"level\":\"vm\"}"), "", LOOSE,
		 "isolation.level"},
		{"more isolation", "", W("\"isolation\":{\"level\":\"vm\"}"), "allow", NULL},
		{"less than the profile's minimum, as before",
		 W("\"isolation\":{\"level\":\"process\"}"),
		 W("\"isolation\":{\"level\":\"process\"}"), "runtime", NULL},
		{"no limit", "", W("\"limits\":{\"memory\":null}"), LOOSE, "limits.memory"},
		{"a higher limit", "", W("\"limits\":{\"pids\":257}"), LOOSE, "limits.pids"},
		{"a lower limit", "", W("\"limits\":{\"pids\":255}"), "allow", NULL},
		{"swap without limit", W("\"limits\":{\"swap\":2147483648}"),
		 W("\"limits\":{\"swap\":-1}"), LOOSE, "limits.swap"},
		{"the user of before, which the profile would not grant",
		 W("\"user\":{\"effective\":\"root\",\"root\":true}"),
		 W("\"user\":{\"effective\":\"root\",\"root\":true}"), "allow", NULL},
		{"root, which it was not", "", W("\"user\":{\"effective\":\"root\",\"root\":true}"),
		 LOOSE, "user.effective"},
		{"no longer root", W("\"user\":{\"effective\":\"root\",\"root\":true}"), "",
		 "allow", NULL},
		{"another user", "", W("\"user\":{\"effective\":\"1001\"}"), LOOSE,
		 "user.effective"},
		{"a restart policy of before", W("\"restart\":\"always\""),
		 W("\"restart\":\"always\""), "allow", NULL},
		{"another restart policy", "", W("\"restart\":\"always\""), LOOSE, "restart"},
		{"no restart any more", W("\"restart\":\"always\""), "", "allow", NULL},
		{"another network", "", W("\"network\":{\"mode\":\"other\"}"), LOOSE,
		 "network.mode"},
		{"no network", "", W("\"network\":{\"mode\":\"none\"}"), "allow", NULL},
		{"a port", "",
		 W("\"network\":{\"ports\":[{\"port\":\"80/tcp\",\"address\":\"\",\"host_port\":"
		   "\"80\",\"field\":\"p\"}]}"),
		 LOOSE, "p"},
		{"an option of confinement that is left out",
		 W("\"security\":[{\"name\":\"apparmor\",\"value\":\"strict\",\"field\":\"s\"}]"),
		 "", LOOSE, "security[].name"},
		{"an option that was there",
		 W("\"security\":[{\"name\":\"seccomp\",\"value\":\"x\",\"field\":\"s\"}]"),
		 W("\"security\":[{\"name\":\"seccomp\",\"value\":\"x\",\"field\":\"s\"}]"),
		 "allow", NULL},
		{"a device", "", W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"), LOOSE,
		 "d"},
		{"the same limit lifted, in another place",
		 W("\"limits\":{\"lifted\":[{\"field\":\"HostConfig.Ulimits[0]\",\"value\":\"n=1\"}"
		   "]}"),
		 W("\"limits\":{\"lifted\":[{\"field\":\"HostConfig.Ulimits[1]\",\"value\":\"n=1\"}"
		   "]}"),
		 "allow", NULL},
		{"a variable", "", W("\"env\":[\"PATH\",\"LD_PRELOAD\"]"), LOOSE, "env[]"},
		{"another value of a variable", W("\"sealed\":{\"env\":[\"1\",\"2\"]}"),
		 W("\"sealed\":{\"env\":[\"1\",\"3\"]}"), LOOSE, "sealed.env[]"},
		{"another command", W("\"sealed\":{\"command\":[\"1\"]}"),
		 W("\"sealed\":{\"command\":[\"2\"]}"), LOOSE, "sealed.command[]"},
		{"the image's own command", W("\"sealed\":{\"command\":[\"1\"]}"),
		 W("\"sealed\":{\"command\":[]}"), "allow", NULL},
		{"another repository that may take its place", "",
		 W("\"image\":{\"name\":\"ghcr.io/new/app\",\"digests\":[\"ghcr.io/new/"
		   "app@sha256:bb\"]}"),
		 "allow", NULL},
		{"another repository of the list", "",
		 W("\"image\":{\"name\":\"reg.example/team/two\",\"digests\":[\"reg.example/team/"
		   "two@sha256:bb\"]}"),
		 LOOSE, "image.name"},
		{"the same image, which is not on the list",
		 W("\"image\":{\"name\":\"evil.example/app\"}"),
		 W("\"image\":{\"name\":\"evil.example/app\"}"), "image", NULL},
		{"another tag", "", W("\"image\":{\"tag\":\"2\"}"), "allow", NULL},
		{"another name", "", W("\"name\":\"other\""), LOOSE, "name"},
		{"its name", "", W("\"name\":\"web\""), "allow", NULL},
		{"a name of compose, without its label", "", W("\"name\":\"abc_web\""), LOOSE,
		 "name"},
		{"a rule of the profile stays one", W("\"hostname\":\"friday\""),
		 W("\"hostname\":\"friday\""), "rule", NULL},
		{"too long ago", "", "{\"now\":1601}", "update_unknown", NULL},
		{"just in time", "", "{\"now\":1600}", "allow", NULL},
		{"a clock that was set back a little", "", "{\"now\":990}", "allow", NULL},
		{"a clock that was set back too far", "", "{\"now\":399}", "update_unknown", NULL},
		{"something that is not known", "", W("\"devices\":null"), "fact_unknown", NULL},
		{"something nobody has a row for", "", W("\"surprise\":{\"a\":1}"), LOOSE, NULL},
		{"what is no fact of a container", "", W("\"exec\":{\"program\":\"sh\"}"), LOOSE,
		 NULL},
	};

	(void)state;
	check_beside("up", rows, sizeof(rows) / sizeof(*rows));
}

#define VOLUME_OF(source, ro, options)                                                             \
	"{\"kind\":\"volume\",\"source\":\"" source "\",\"target\":\"/v\",\"read_only\":" ro       \
	",\"options\":[" options "],\"mine\":false,\"field\":\"m\"}"
#define VOLUME    VOLUME_OF("v", "false", "")
#define MOUNTS(x) W("\"mounts\":[" x "]")

static void mounts_stay_what_they_were(void **state)
{
	static const struct beside rows[] = {
		{"somebody else's volume, as before", MOUNTS(VOLUME), MOUNTS(VOLUME), "allow",
		 NULL},
		{"one less", MOUNTS(VOLUME), MOUNTS(""), "allow", NULL},
		{"another volume", MOUNTS(VOLUME), MOUNTS(VOLUME_OF("w", "false", "")), LOOSE, "m"},
		{"writable now", MOUNTS(VOLUME_OF("v", "true", "")), MOUNTS(VOLUME), LOOSE, "m"},
		{"read-only now", MOUNTS(VOLUME), MOUNTS(VOLUME_OF("v", "true", "")), "allow",
		 NULL},
		{"another option", MOUNTS(VOLUME), MOUNTS(VOLUME_OF("v", "false", "\"shared\"")),
		 LOOSE, "m"},
		{"an option less", MOUNTS(VOLUME_OF("v", "false", "\"NonRecursive\"")),
		 MOUNTS(VOLUME), LOOSE, "m"},
		{"a volume without a name", MOUNTS(""),
		 MOUNTS("{\"kind\":\"volume\",\"target\":\"/d\",\"options\":[],\"field\":\"m\"}"),
		 "allow", NULL},
		{"a memory without limit", MOUNTS(""),
		 MOUNTS("{\"kind\":\"tmpfs\",\"target\":\"/d\",\"options\":[],\"field\":\"m\"}"),
		 LOOSE, "m"},
	};
	static const struct beside whole[] = {
		{"the host's files", MOUNTS(""),
		 MOUNTS("{\"kind\":\"bind\",\"source\":\"/\",\"target\":\"/h\",\"read_only\":true,"
			"\"options\":[],\"host\":{\"kind\":\"directory\",\"real\":\"/\"},\"field\":"
			"\"m\"}"),
		 LOOSE, "m"},
	};

	(void)state;
	check_beside("up", rows, 8);
	check_beside("up", whole, 1);
}

static void what_a_profile_says_besides(void **state)
{
	static const struct beside host[] = {
		{"privileged may stay", W("\"privileged\":true,\"isolation\":{\"level\":\"none\"}"),
		 W("\"privileged\":true,\"isolation\":{\"level\":\"none\"}"), "allow", NULL},
		{"and may not come", "", W("\"privileged\":true"), LOOSE, "privileged"},
	};
	static const struct beside freer[] = {
		{"another command", W("\"sealed\":{\"command\":[\"1\"]}"),
		 W("\"sealed\":{\"command\":[\"2\"]}"), "allow", NULL},
		{"another variable", "", W("\"env\":[\"NEW\"],\"sealed\":{\"env\":[\"9\"]}"),
		 "allow", NULL},
		{"another label, of the list", "",
		 W("\"labels\":[{\"name\":\"ok.x\",\"field\":\"l\"}]"), "allow", NULL},
		{"another label", "", W("\"labels\":[{\"name\":\"x\",\"field\":\"l\"}]"), "label",
		 NULL},
		{"more memory, which the lists would grant", "",
		 W("\"limits\":{\"memory\":1073741825}"), LOOSE, "limits.memory"},
	};
	static const struct beside counted[] = {
		{"somebody else's takes nothing of the caller's quota", "", "", "allow", NULL},
		{"its own does, and what it has must be known", "",
		 "{\"identity\":{\"owner\":\"bob\"}}", "fact_unknown", NULL},
	};
	static const struct beside watching[] = {
		{"where nobody compares the lists judge",
		 W("\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"a\"}]}"),
		 W("\"capabilities\":{\"add\":[{\"name\":\"SETUID\",\"field\":\"b\"}]}"),
		 "capability bind network log_driver update_looser", NULL},
	};

	(void)state;
	check_beside("host", host, 2);
	check_beside("counted", counted, 2);
	check_beside("free", freer, 5);
	(void)watching;
	for (size_t i = 0; i < 1; i++) {
		struct kit_answer ans = {.arena = arena_create(1 << 22)};
		struct jv all = replacing(ans.arena, watching[i].old, watching[i].now);

		ans.result = engine_judge(eng, engine_profile(eng, "watching"), &all, ans.arena,
					  &ans.decision, &ans.err);
		CHECK_INT("a watched comparison excuses nothing", VERDICT_DENY,
			  ans.decision.verdict);
		CHECK_STR("the list's own word", "capability",
			  reason_name(ans.decision.violations.list[0].reason));
		kit_drop(&ans);
	}
}

/* An exception for what is looser is none for what the other checks find. */
static void an_exception_for_the_update_is_none_for_the_checks(void **state)
{
	static const struct beside rows[] = {
		{"a variable, which no other check is about", "", W("\"env\":[\"PATH\",\"NEW\"]"),
		 "allow", NULL},
		{"a capability", "",
		 W("\"capabilities\":{\"add\":[{\"name\":\"SYS_ADMIN\",\"field\":\"c\"}]}"),
		 "capability", NULL},
		{"a device", "", W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"),
		 "device", NULL},
		{"what was there before, beside something that is looser",
		 W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"),
		 W("\"env\":[\"PATH\",\"NEW\"],\"devices\":[{\"value\":\"/dev/kvm\",\"field\":"
		   "\"d\"}]"),
		 "device", NULL},
		{"what was there before, and nothing is looser",
		 W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"),
		 W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"), "allow", NULL},
		{"it was taken away too long ago, and had a device",
		 W("\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]"),
		 "{\"now\":9000,\"workload\":{\"devices\":[{\"value\":\"/dev/"
		 "kvm\",\"field\":\"d\"}]"
		 "}}",
		 "device", NULL},
	};

	(void)state;
	check_beside("excepted", rows, sizeof(rows) / sizeof(*rows));
}

#define PRUNE "\"operation\":{\"name\":\"container.prune\",\"class\":\"host\",\"group\":\"\"}"

static void what_replaces_nothing(void **state)
{
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "up", kit_create, "", &ans);
	CHECK_STR("a create", "update_unknown",
		  reason_name(ans.decision.violations.list[0].reason));
	kit_drop(&ans);
	kit_judge(eng, "free", kit_create, "", &ans);
	CHECK_STR("fresh", "allow", kit_reasons(&ans));
	kit_drop(&ans);
	kit_judge(eng, "free", kit_create,
		  W("\"capabilities\":{\"add\":[{\"name\":\"CHOWN\",\"field\":\"a\"}]}"), &ans);
	CHECK_STR("fresh, beyond the lists", "capability", kit_reasons(&ans));
	kit_drop(&ans);
	kit_judge(eng, "host", "{" PRUNE "}", "", &ans);
	CHECK_STR("what a prune removes is not known", "update_would_not_return",
		  kit_reasons(&ans));
	kit_drop(&ans);
	CHECK_INT("no update, no check of stops", GRANT_PLAIN,
		  profile_grant(engine_profile(eng, "none"), OP_CONTAINER_STOP));
	CHECK_INT("an update judges them", GRANT_JUDGE,
		  profile_grant(engine_profile(eng, "up"), OP_CONTAINER_STOP));
}

/* --- what takes a container away --- */

#define STOP                                                                                       \
	"\"operation\":{\"name\":\"container.stop\",\"class\":\"lifecycle\",\"group\":"            \
	"\"container.run\"}"

static void what_would_not_return_stays(void **state)
{
	static const struct {
		const char *label, *change, *want, *text;
	} rows[] = {
		{"as it is", "{" STOP "}", "allow", ""},
		{"privileged", "{" STOP ",\"workload\":{\"privileged\":true}}",
		 "update_would_not_return", "privileged: privileged mode"},
		{"too weak", "{" STOP ",\"workload\":{\"isolation\":{\"level\":\"process\"}}}",
		 "update_would_not_return", "runtime: "},
		{"an image off the list",
		 "{" STOP ",\"workload\":{\"image\":{\"name\":\"evil.example/app\"}}}",
		 "update_would_not_return", "image: "},
		{"an image that is gone", "{" STOP ",\"workload\":{\"image\":{\"present\":false}}}",
		 "update_would_not_return", "image_absent: "},
		{"what a rule refuses", "{" STOP ",\"workload\":{\"hostname\":\"friday\"}}",
		 "update_would_not_return", "rule: not on fridays"},
		{"what nobody knows", "{" STOP ",\"workload\":null}", "update_would_not_return",
		 "fact_unknown: "},
		{"volumes that would go with it", "{" STOP ",\"replaces\":{\"loses\":[\"/data\"]}}",
		 "update_would_not_return", "volumes without a name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans = {.arena = arena_create(1 << 22)};
		struct jv all = replacing(ans.arena, rows[i].change, "");
		struct jv other = kit_merged(ans.arena, kit_create, rows[i].change);
		const struct jv *loses = jv_path(&other, "replaces.loses");
		const struct jv *workload = jv_get(&other, "workload");
		struct jv *replaces = (struct jv *)jv_get(&all, "replaces");

		jv_set(ans.arena, &all, "operation", *jv_get(&other, "operation"));
		if (loses)
			jv_set(ans.arena, replaces, "loses", *loses);
		jv_set(ans.arena, &all, "workload", *workload);
		ans.result = engine_judge(eng, engine_profile(eng, "up"), &all, ans.arena,
					  &ans.decision, &ans.err);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		if (*rows[i].text)
			CHECK_INT(rows[i].label, 1,
				  strstr(ans.decision.violations.list[0].text, rows[i].text) !=
					  NULL);
		kit_drop(&ans);
	}
	{
		struct kit_answer ans = {.arena = arena_create(1 << 22)};
		struct jv all =
			replacing(ans.arena, "", "{" STOP ",\"identity\":{\"owner\":\"bob\"}}");

		ans.result = engine_judge(eng, engine_profile(eng, "counted"), &all, ans.arena,
					  &ans.decision, &ans.err);
		CHECK_STR("nothing comes to what there is", "allow", kit_reasons(&ans));
		kit_drop(&ans);
	}
}

/* An exception that lets the re-creation pass is used by the stop already. */
static void an_exception_for_the_return_is_on_record(void **state)
{
	static const char device[] = "\"devices\":[{\"value\":\"/dev/kvm\",\"field\":\"d\"}]";
	struct engine *own = kit_open(
		"return profile \"p\" { operations = { \"container.run\" }, images = { \"**\" }, "
		"isolation = { min = \"kernel\" }, networks = { \"agents\" }, mounts = { { "
		"\"/srv/ws\", \"rw\" } }, log_drivers = { \"local\" }, update = true, modes = { "
		"update = \"shadow\" }, exception { rule = \"device\", when = { backend = \"*\" }, "
		"owner = \"ann\", ticket = \"T\", reason = \"moving\", expires = \"2026-12-31\" } "
		"}");
	struct kit_answer ans = {.arena = arena_create(1 << 22)};
	char old[200], now[300];
	struct jv all;

	(void)state;
	/* It only looks on, and names another fault: so nothing is kept, and the exception counts.
	 */
	snprintf(old, sizeof(old), "{\"workload\":{%s}}", device);
	snprintf(now, sizeof(now), "{" STOP ",\"workload\":{\"env\":[\"NEW\"],%s}}", device);
	all = replacing(ans.arena, old, now);
	ans.result = engine_judge(own, engine_profile(own, "p"), &all, ans.arena, &ans.decision,
				  &ans.err);
	CHECK_INT("allowed", VERDICT_ALLOW, ans.decision.verdict);
	CHECK_INT("used", 1, ans.decision.excepted_count);
	kit_drop(&ans);
	engine_close(own);
}

/* --- any workload beside itself, and each way to loosen it --- */

static uint64_t seed;

static unsigned dice(unsigned sides)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)((seed >> 33) % sides);
}

static bool how_is(size_t i, const char *how)
{
	return strcmp(update_rows[i].how, how) == 0;
}

static struct jv *place(struct arena *a, struct jv *at, const char *path, struct span *ret_last)
{
	struct span rest = span_of(path), step;

	while (span_cut(&rest, '.', &step)) {
		struct jv *next = (struct jv *)jv_get_span(at, step);

		at = next ? next : jv_set_span(a, at, step, jv_object());
	}
	if (step.len > 2 && span_ends(step, "[]"))
		step.len -= 2;
	*ret_last = step;
	return at;
}

static void put(struct arena *a, struct jv *at, const char *path, struct jv value)
{
	struct span last;
	struct jv *holder = place(a, at, path, &last);

	jv_set_span(a, holder, last, value);
}

static const struct jv *look(struct arena *a, struct jv *at, const char *path)
{
	struct span last;
	struct jv *holder = place(a, at, path, &last);

	return jv_get_span(holder, last);
}

static const char *word(struct arena *a, const char *prefix)
{
	char text[40];

	snprintf(text, sizeof(text), "%s%u", prefix, dice(5));
	return arena_strndup(a, text, strlen(text));
}

static struct jv any_value(struct arena *a, size_t i)
{
	static const char *const levels[] = {"none", "process", "kernel", "vm"};
	static const char *const bools[] = {"ONLY_IF", "KEPT", "ROOT"};
	static const char *const ints[] = {"LIMIT", "MOST", "SWAP"};
	const char *path = update_rows[i].path;
	struct jv list = jv_array();

	for (size_t k = 0; k < 3; k++) {
		if (how_is(i, bools[k]))
			return jv_bool(dice(2));
		if (how_is(i, ints[k]))
			return jv_int(1 + dice(1000));
	}
	if (how_is(i, "LEVEL"))
		return jv_string(levels[dice(4)]);
	if (strlen(path) < 2 || strcmp(path + strlen(path) - 2, "[]") != 0)
		return jv_string(word(a, "w"));
	for (unsigned n = dice(4); n > 0; n--)
		jv_push(a, &list, jv_string(word(a, "e")));
	return list;
}

static size_t list_len(const char *path)
{
	const char *at = strstr(path, "[].");

	return at ? (size_t)(at - path) : 0;
}

/* A workload of every fact that a container can have, at random. */
static struct jv any_workload(struct arena *a)
{
	struct jv ret = jv_object();

	for (size_t i = 0; i < update_row_count; i++) {
		size_t n = list_len(update_rows[i].path);
		const char *list;
		struct jv *entries;

		if (how_is(i, "NONE"))
			continue;
		if (!n) {
			if (dice(4) || how_is(i, "LEVEL"))
				put(a, &ret, update_rows[i].path, any_value(a, i));
			continue;
		}
		list = arena_strndup(a, update_rows[i].path, n);
		entries = (struct jv *)look(a, &ret, list);
		if (!entries) {
			put(a, &ret, list, jv_array());
			entries = (struct jv *)look(a, &ret, list);
			for (unsigned k = dice(3); k > 0; k--)
				jv_push(a, entries, jv_object());
		}
		for (size_t k = 0; k < entries->count; k++)
			if (dice(4))
				put(a, &entries->items[k], update_rows[i].path + n + 3,
				    any_value(a, i));
	}
	put(a, &ret, "name", jv_string("web"));
	put(a, &ret, "image.id", jv_string("sha256:aa"));
	return ret;
}

static struct jv copy_of(struct arena *a, const struct jv *v)
{
	struct jv ret;
	struct buf text;

	buf_init(&text, 1 << 20);
	jv_write(&text, v);
	buf_put(&text, "", 1);
	ret = kit_json(a, arena_strndup(a, buf_span(&text).at, buf_len(&text)));
	buf_fini(&text);
	return ret;
}

static size_t faults(struct arena *a, const struct jv *old, const struct jv *now)
{
	static const char settings[] = "{\"within\":600,\"changes\":[],\"moves\":[]}";
	struct jv all = jv_object(), replaces = jv_object(), says = kit_json(a, settings);

	jv_set(a, &replaces, "name", jv_string("web"));
	jv_set(a, &replaces, "by", jv_string("name"));
	jv_set(a, &replaces, "at", jv_int(1000));
	jv_set(a, &replaces, "workload", *old);
	jv_set(a, &all, "replaces", replaces);
	jv_set(a, &all, "workload", *now);
	jv_set(a, &all, "now", jv_int(1001));
	return update_faults(&all, &says, OP_CONTAINER_CREATE, a).count;
}

/* Puts a new entry, or word, into the list of row i. */
static void lengthen(struct arena *a, struct jv *now, size_t i)
{
	size_t n = list_len(update_rows[i].path);
	const char *path = update_rows[i].path;
	const char *list = arena_strndup(a, path, n ? n : strlen(path));
	struct jv *at;

	at = (struct jv *)look(a, now, list);
	if (!at) {
		put(a, now, list, jv_array());
		at = (struct jv *)look(a, now, list);
	}
	if (!n) {
		jv_push(a, at, jv_string("something new"));
		return;
	}
	put(a, jv_push(a, at, jv_object()), path + n + 3, jv_string("something new"));
}

/* Makes one fact looser than it is; false if it cannot be, or is as loose as can be. */
static bool loosen(struct arena *a, struct jv *now, size_t i)
{
	const char *path = update_rows[i].path;
	bool list = strlen(path) > 2 && strcmp(path + strlen(path) - 2, "[]") == 0;
	const struct jv *v = list_len(path) ? NULL : look(a, now, path);
	bool is_true = v && v->kind == JV_BOOL && v->b;
	bool root = jv_path(now, "user.root") && jv_path(now, "user.root")->b;

	if (list_len(path) && (how_is(i, "SAME") || how_is(i, "EACH"))) {
		lengthen(a, now, i);
	} else if (list_len(path) || how_is(i, "ANY")) {
		return false;
	} else if (list && !how_is(i, "SUPERSET") && !how_is(i, "NONE")) {
		lengthen(a, now, i);
	} else if (how_is(i, "SUPERSET")) {
		if (!v || !v->count)
			return false;
		put(a, now, path, jv_array());
	} else if (how_is(i, "ONLY_IF")) {
		if (is_true)
			return false;
		put(a, now, path, jv_bool(true));
	} else if (how_is(i, "KEPT")) {
		if (!is_true)
			return false;
		put(a, now, path, jv_bool(dice(2) == 2));
	} else if (how_is(i, "LEVEL")) {
		if (span_is(v->str, "none"))
			return false;
		put(a, now, path, jv_string("none"));
	} else if (how_is(i, "LIMIT")) {
		if (!v)
			return false;
		put(a, now, path, dice(2) ? jv_int(v->i + 1) : jv_int(0));
	} else if (how_is(i, "MOST") || how_is(i, "SWAP")) {
		put(a, now, path, v ? jv_int(v->i + 1) : jv_int(1));
	} else if (how_is(i, "USER") || how_is(i, "ROOT")) {
		if (root)
			return false;
		put(a, now, path, how_is(i, "ROOT") ? jv_bool(true) : jv_string("somebody else"));
	} else {
		put(a, now, path, jv_string("something new"));
		if (how_is(i, "IMAGE")) /* one without a name is known by its id */
			put(a, now, "image.id", jv_string("sha256:bb"));
	}
	return true;
}

#define ROUNDS 300

static void any_workload_may_follow_itself_and_none_that_is_looser(void **state)
{
	unsigned loosened = 0;

	(void)state;
	for (seed = 1; seed <= ROUNDS; seed++) {
		struct arena *a = arena_create(64u << 20);
		uint64_t kept = seed;
		struct jv old = any_workload(a);
		char label[120];

		snprintf(label, sizeof(label), "seed %llu", (unsigned long long)kept);
		CHECK_INT(label, 0, faults(a, &old, &old));
		for (size_t i = kept % 5; i < update_row_count; i += 5) {
			struct jv now = copy_of(a, &old);

			if (!loosen(a, &now, i))
				continue;
			loosened++;
			snprintf(label, sizeof(label), "seed %llu: %s", (unsigned long long)kept,
				 update_rows[i].path);
			CHECK_INT(label, 1, faults(a, &old, &now) > 0);
		}
		arena_destroy(a);
		seed = kept;
	}
	CHECK_INT("many were loosened", 1, loosened > 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_fact_has_its_row),
		cmocka_unit_test(nothing_may_be_looser),
		cmocka_unit_test(mounts_stay_what_they_were),
		cmocka_unit_test(what_a_profile_says_besides),
		cmocka_unit_test(an_exception_for_the_update_is_none_for_the_checks),
		cmocka_unit_test(what_replaces_nothing),
		cmocka_unit_test(what_would_not_return_stays),
		cmocka_unit_test(an_exception_for_the_return_is_on_record),
		cmocka_unit_test(any_workload_may_follow_itself_and_none_that_is_looser),
	};

	return cmocka_run_group_tests(tests, open_engine, close_engine);
}
