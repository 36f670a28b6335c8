/* Which containers the names of control groups speak of, and whether two processes share them. */
#include "proxy/cgroup.h"
#include "tests/unit/check.h"

#define A     "41db239cf90c4ab592cea5c359f25de7ff8572279780317452d8a0f208a9fb64"
#define B     "90d7fc005b6a13750eaa58b4c9f412709c2525404cf81557d5913d6cee8b4d1c"
#define SHORT "41db239cf90c4ab592cea5c359f25de7ff8572279780317452d8a0f208a9fb6"
#define UPPER "41DB239CF90C4AB592CEA5C359F25DE7FF8572279780317452D8A0F208A9FB64"
#define V1(group)                                                                                  \
	"9:name=systemd:" group "\n8:pids:" group "\n4:memory:" group "\n2:cpu,cpuacct:" group "\n"

static const struct {
	const char *name, *text;
	enum cgroup_place place;
	const char *ids; /* with blanks between them */
} rows[] = {
	{"docker, cgroupfs, v2", "0::/docker/" A "\n", CGROUP_INSIDE, A},
	{"docker, systemd, v2", "0::/system.slice/docker-" A ".scope\n", CGROUP_INSIDE, A},
	{"docker, cgroupfs, v1", V1("/docker/" A) "0::/docker/" A "\n", CGROUP_INSIDE, A},
	{"docker, systemd, v1", V1("/system.slice/docker-" A ".scope"), CGROUP_INSIDE, A},
	{"hybrid: the unified hierarchy is the daemon's",
	 V1("/docker/" A) "0::/system.slice/containerd.service\n", CGROUP_INSIDE, A},
	{"docker, rootless",
	 "0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope\n",
	 CGROUP_INSIDE, A},
	{"another parent", "0::/ci/jobs/" A "\n", CGROUP_INSIDE, A},
	{"podman, systemd", "0::/machine.slice/libpod-" A ".scope/container\n", CGROUP_INSIDE, A},
	{"the gate's keeper", V1("/sallyport-0123456789ab/box-" A), CGROUP_INSIDE, A},
	{"podman, cgroupfs", V1("/libpod_parent/libpod-" A), CGROUP_INSIDE, A},
	{"podman, rootless",
	 "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope\n",
	 CGROUP_INSIDE, A},
	{"podman's monitor", "0::/machine.slice/libpod-conmon-" A ".scope\n", CGROUP_OUTSIDE, ""},
	{"kubernetes, systemd, containerd",
	 "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice/"
	 "cri-containerd-" A ".scope\n",
	 CGROUP_INSIDE, A},
	{"kubernetes, cgroupfs", V1("/kubepods/besteffort/pod1234/" A), CGROUP_INSIDE, A},
	{"kubernetes, with colons",
	 "4:memory:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" A "\n",
	 CGROUP_INSIDE, A},
	{"CRI-O", "0::/kubepods.slice/crio-" A ".scope\n", CGROUP_INSIDE, A},
	{"a group below", "0::/docker/" A "/init.scope\n", CGROUP_INSIDE, A},
	{"nested", "0::/docker/" A "/docker/" B "\n", CGROUP_INSIDE, A " " B},
	{"seen from a group of the reader's own", "0::/../docker-" B ".scope\n", CGROUP_INSIDE, B},
	{"likewise, cgroupfs", "0::/../" B "\n", CGROUP_INSIDE, B},
	{"a build by BuildKit", "0::/docker/buildkit/ab12\n", CGROUP_OUTSIDE, ""},
	{"a user's session", "0::/user.slice/user-1000.slice/session-2.scope\n", CGROUP_OUTSIDE,
	 ""},
	{"the root", V1("/") "0::/\n", CGROUP_OUTSIDE, ""},
	{"an id that is too short", "0::/docker/" SHORT "\n", CGROUP_OUTSIDE, ""},
	{"an id in upper case", "0::/docker/" UPPER "\n", CGROUP_OUTSIDE, ""},
	{"something behind the id", "0::/docker/" A "x\n", CGROUP_OUTSIDE, ""},
	{"a scope without a maker", "0::/docker/" A ".scope\n", CGROUP_OUTSIDE, ""},
	{"hierarchies that differ", "8:pids:/docker/" A "\n4:memory:/docker/" B "\n",
	 CGROUP_UNKNOWN, ""},
	{"one more nested than the other",
	 "8:pids:/docker/" A "\n4:memory:/docker/" A "/docker/" B "\n", CGROUP_UNKNOWN, ""},
	{"nothing", "", CGROUP_UNKNOWN, ""},
	{"cut off", "0::/docker/" A, CGROUP_UNKNOWN, ""},
	{"no path", "0::\n", CGROUP_UNKNOWN, ""},
	{"a relative path", "0::docker/" A "\n", CGROUP_UNKNOWN, ""},
	{"a way up in the middle", "0::/docker/../" A "\n", CGROUP_UNKNOWN, ""},
	{"an empty part", "0::/docker//" A "\n", CGROUP_UNKNOWN, ""},
	{"a slash at the end", "0::/docker/" A "/\n", CGROUP_UNKNOWN, ""},
	{"no number", "x::/docker/" A "\n", CGROUP_UNKNOWN, ""},
	{"no second colon", "0:/docker/" A "\n", CGROUP_UNKNOWN, ""},
	{"a group that was removed", "0::/docker/" A " (deleted)\n", CGROUP_UNKNOWN, ""},
	{"more in one another than are told",
	 "0::/docker/" A "/docker/" B "/docker/" A "/docker/" B "/docker/" A "\n", CGROUP_UNKNOWN,
	 ""},
	{"words", "hello\nworld\n", CGROUP_UNKNOWN, ""},
};

static void groups_are_read_strictly(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct cgroup_ids ids;
		char got[CGROUP_IDS_MAX * (CGROUP_ID_LEN + 1) + 1] = "";

		CHECK_INT(rows[i].name, rows[i].place,
			  cgroup_containers(span_of(rows[i].text), &ids));
		for (size_t k = 0; rows[i].place == CGROUP_INSIDE && k < ids.count; k++) {
			if (k)
				strcat(got, " ");
			strncat(got, ids.id[k].at, ids.id[k].len);
		}
		CHECK_STR(rows[i].name, rows[i].ids, got);
	}
}

static void a_nul_is_none(void **state)
{
	static const char text[] = "0::/docker/\0/" A "\n";
	struct cgroup_ids ids;

	(void)state;
	CHECK_INT("a NUL", CGROUP_UNKNOWN,
		  cgroup_containers((struct span){text, sizeof(text) - 1}, &ids));
}

static void groups_are_held_against_the_first_process(void **state)
{
	static const struct {
		const char *name, *text, *init;
		bool want;
	} pairs[] = {
		{"the same", V1("/docker/" A), V1("/docker/" A), true},
		{"below", "0::/docker/" A "/sub\n", "0::/docker/" A "\n", true},
		{"its first process is below", "0::/docker/" A "/x\n", "0::/docker/" A "/init\n",
		 true},
		{"nested in it", "0::/docker/" A "/docker/" B "\n", "0::/docker/" A "\n", true},
		{"another container", "0::/docker/" B "\n", "0::/docker/" A "\n", false},
		{"the same name elsewhere",
		 "0::/user.slice/user-1000.slice/user@1000.service/docker-" A ".scope\n",
		 "0::/system.slice/docker-" A ".scope\n", false},
		{"the same name, below another", "0::/docker/" B "/docker/" A "\n",
		 "0::/docker/" A "\n", false},
		{"left in one hierarchy", "8:pids:/\n4:memory:/docker/" A "\n",
		 "8:pids:/docker/" A "\n4:memory:/docker/" A "\n", false},
		{"entered one hierarchy alone", "8:pids:/docker/" A "\n4:memory:/\n",
		 "8:pids:/docker/" A "\n4:memory:/docker/" A "\n", false},
		{"in one that the first process is not in",
		 "8:pids:/docker/" A "\n4:memory:/docker/" A "\n",
		 "8:pids:/docker/" A "\n4:memory:/\n", false},
		{"outside", "0::/\n", "0::/docker/" A "\n", false},
		{"both outside", "0::/\n", "0::/\n", false},
		{"nothing", "", "", false},
		{"garbage behind", "0::/docker/" A "\nx\n", "0::/docker/" A "\n", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
		CHECK_INT(
			pairs[i].name, pairs[i].want,
			cgroup_within(span_of(pairs[i].text), span_of(pairs[i].init), span_of(A)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_read_strictly),
		cmocka_unit_test(a_nul_is_none),
		cmocka_unit_test(groups_are_held_against_the_first_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
