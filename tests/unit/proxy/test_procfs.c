/* What the kernel writes about a process is read line by line, and what is hostile in it is not
 * there. */
#include "proxy/procfs.h"
#include "tests/unit/check.h"

#include <stdio.h>

#define LIMITLESS "99999999999999999999999999999999999999999999999999999999999999999999999999999999"

#define STATUS_HEAD "Name:\tsleep\nState:\tS (sleeping)\nPPid:\t7\n"
#define STATUS_IDS  "Uid:\t1000\t1001\t1002\t1003\nGid:\t5\t6\t7\t8\nNSpid:\t42\t1\n"
#define STATUS_CAPS                                                                                \
	"CapInh:\t0000000000000000\nCapPrm:\t00000000a80425fb\nCapEff:\t0000000000000000\n"        \
	"CapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000001\n"
#define STATUS_REST "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n"
#define STATUS      STATUS_HEAD STATUS_IDS STATUS_CAPS STATUS_REST

static void a_status_is_read(void **state)
{
	struct procfs_status s;

	(void)state;
	CHECK_INT("whole", true, procfs_status(span_of(STATUS), &s));
	CHECK_INT("parent", 7, s.parent);
	CHECK_INT("uid", 1001, s.uid);
	CHECK_INT("gid", 6, s.gid);
	CHECK_INT("depth", 2, s.depth);
	CHECK_INT("prm", 0xa80425fb, s.cap_prm);
	CHECK_INT("bnd", 0x1ffffffffff, s.cap_bnd);
	CHECK_INT("amb", 1, s.cap_amb);
	CHECK_INT("nnp", true, s.no_new_privs);
	CHECK_INT("seccomp", 2, s.seccomp);
	CHECK_INT("filters", 3, s.filters);
}

static void a_status_without_something_is_none(void **state)
{
	static const struct {
		const char *label, *text;
	} rows[] = {
		{"nothing", ""},
		{"no parent", STATUS_IDS STATUS_CAPS STATUS_REST},
		{"no ids", STATUS_HEAD STATUS_CAPS STATUS_REST},
		{"no capabilities", STATUS_HEAD STATUS_IDS STATUS_REST},
		{"cut off", STATUS_HEAD STATUS_IDS STATUS_CAPS "NoNewPrivs:\t1\nSecc"},
		{"a letter", STATUS_HEAD STATUS_IDS STATUS_CAPS "NoNewPrivs:\t1\nSeccomp:\tx\n"},
		{"a mode that is none",
		 STATUS_HEAD STATUS_IDS STATUS_CAPS "NoNewPrivs:\t1\nSeccomp:\t3\n"},
		{"too large",
		 STATUS_HEAD STATUS_IDS "CapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t" LIMITLESS
					"\nCapAmb:\t0\n" STATUS_REST},
		{"one id alone", STATUS_HEAD "Uid:\t0\nGid:\t0\t0\t0\t0\n" STATUS_CAPS STATUS_REST},
	};
	struct procfs_status s;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].label, false, procfs_status(span_of(rows[i].text), &s));
}

static void a_start_time_is_found_behind_any_name(void **state)
{
	static const struct {
		const char *label, *text;
		bool fine;
		uint64_t want;
	} rows[] = {
		{"plain",
		 "42 (sleep) S 1 2 3 4 5 4194304 7 8 9 10 11 12 13 14 15 16 17 18 1234 20\n", true,
		 1234},
		{"a name that looks like more",
		 "42 (a) S 1 1 1 1) S 1 2 3 4 5 4194304 7 8 9 10 11 12 13 14 15 16 17 18 1234 20\n",
		 true, 1234},
		{"ended",
		 "42 (sleep) Z 1 2 3 4 5 4194304 7 8 9 10 11 12 13 14 15 16 17 18 1234 20\n", false,
		 0},
		{"ending",
		 "42 (sleep) R 1 2 3 4 5 4194308 7 8 9 10 11 12 13 14 15 16 17 18 1234 20\n", false,
		 0},
		{"cut off", "42 (sleep) S 1 2 3 4 5\n", false, 0},
		{"no name", "42 sleep S 1 2 3\n", false, 0},
		{"no number", "42 (s) S 1 2 3 4 5 4194304 7 8 9 10 11 12 13 14 15 16 17 18 -1 20\n",
		 false, 0},
		{"nothing", "", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t got = 0;

		CHECK_INT(rows[i].label, rows[i].fine,
			  procfs_start_time(span_of(rows[i].text), &got));
		CHECK_INT(rows[i].label, rows[i].want, got);
	}
}

static void mounts_are_read(void **state)
{
	static const char text[] =
		"89 72 254:0 /srv/a\\040b /w\\011x ro,relatime shared:3 master:2 - ext4 /dev/vda "
		"rw\n"
		"what is no mount\n"
		"90 72 0:7 / /x rw - tmpfs\n"
		"91 72 0:8 / /y rw master:1 propagate_from:2 - tmpfs none rw,size=1\n"
		"92 72 0:8 / /cut rw";
	struct span rest = span_of(text);
	struct procfs_mount m;
	unsigned bad = 0;
	char point[32];

	(void)state;
	CHECK_INT("first", true, procfs_mount(&rest, &m, &bad));
	CHECK_INT("id", 89, m.id);
	CHECK_INT("parent", 72, m.parent);
	CHECK_INT("major", 254, m.major);
	CHECK_INT("unescaped", true, procfs_unescape(m.point, point, sizeof(point)));
	CHECK_STR("point", "/w\tx", point);
	CHECK_INT("ro", true, procfs_has_word(m.options, "ro"));
	CHECK_INT("not r", false, procfs_has_word(m.options, "r"));
	CHECK_STR("propagation", "shared", m.propagation);
	CHECK_INT("type", true, span_is(m.type, "ext4"));
	CHECK_INT("second", true, procfs_mount(&rest, &m, &bad));
	CHECK_INT("one was bad", 1, bad);
	CHECK_INT("no source", 0, m.source.len);
	CHECK_STR("private", "private", m.propagation);
	CHECK_INT("third", true, procfs_mount(&rest, &m, &bad));
	CHECK_STR("slave", "slave", m.propagation);
	CHECK_INT("super", true, procfs_has_word(m.super, "size=1"));
	CHECK_INT("cut off", false, procfs_mount(&rest, &m, &bad));
	CHECK_INT("and counted", 2, bad);
}

static void hostile_mounts_are_none(void **state)
{
	static const char *const rows[] = {
		"x 72 254:0 / /w rw - ext4 a rw\n",
		"1 72 254 / /w rw - ext4 a rw\n",
		"1 72 254:x / /w rw - ext4 a rw\n",
		"1 72 99999999999:0 / /w rw - ext4 a rw\n",
		"1 72 254:0 / /w rw shared:1 ext4 a rw\n",
		"1 72 254:0 / /w\n",
		"99999999999999999999 72 254:0 / /w rw - ext4 a rw\n",
		"-1 72 254:0 / /w rw - ext4 a rw\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct span rest = span_of(rows[i]);
		struct procfs_mount m;
		unsigned bad = 0;

		CHECK_INT(rows[i], false, procfs_mount(&rest, &m, &bad));
		CHECK_INT(rows[i], 1, bad);
	}
}

static void escapes_are_octal(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} rows[] = {
		{"/plain", "/plain"}, {"/a\\134b", "/a\\b"},   {"\\012", "\n"},   {"", ""},
		{"/a\\", NULL},       {"/a\\13", NULL},        {"/a\\19x", NULL}, {"\\000", NULL},
		{"\\777", NULL},      {"/far-too-long", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char out[10];
		bool fine = procfs_unescape(span_of(rows[i].text), out, sizeof(out));

		CHECK_INT(rows[i].text, rows[i].want != NULL, fine);
		if (fine)
			CHECK_STR(rows[i].text, rows[i].want, out);
	}
}

static void control_groups_are_found(void **state)
{
	static const char v1[] = "4:memory:/docker/ab\n2:cpu,cpuacct:/docker/cd\n0::/docker/ef\n";
	static const struct {
		const char *label, *text, *controller, *want;
	} rows[] = {
		{"version 1", v1, "memory", "/docker/ab"},
		{"one of two", v1, "cpu", "/docker/cd"},
		{"not a part of a word", v1, "cpuac", NULL},
		{"unified", v1, "", "/docker/ef"},
		{"absent", v1, "pids", NULL},
		{"a colon in the path", "0::/a:b:c\n", "", "/a:b:c"},
		{"out of what is mounted", "0::/../x\n", "", NULL},
		{"no path", "0::\n", "", NULL},
		{"no number", "x::/a\n", "", NULL},
		{"nothing", "", "memory", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct span got = {"", 0};
		bool fine = procfs_cgroup(span_of(rows[i].text), rows[i].controller, &got);

		CHECK_INT(rows[i].label, rows[i].want != NULL, fine);
		if (fine)
			CHECK_INT(rows[i].label, true, span_is(got, rows[i].want));
	}
}

static void limits_are_numbers_or_none(void **state)
{
	static const struct {
		const char *text;
		bool fine;
		int64_t want;
	} rows[] = {
		{"104857600\n", true, 104857600},
		{"max\n", true, PROCFS_UNLIMITED},
		{"-1\n", true, PROCFS_UNLIMITED},
		{"9223372036854771712\n", true, PROCFS_UNLIMITED},
		{"0\n", true, 0},
		{"-2\n", false, 7},
		{"12x\n", false, 7},
		{"\n", false, 7},
		{LIMITLESS, false, 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int64_t got = 7;

		CHECK_INT(rows[i].text, rows[i].fine, procfs_limit(span_of(rows[i].text), &got));
		CHECK_INT(rows[i].text, rows[i].want, got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_status_is_read),
		cmocka_unit_test(a_status_without_something_is_none),
		cmocka_unit_test(a_start_time_is_found_behind_any_name),
		cmocka_unit_test(mounts_are_read),
		cmocka_unit_test(hostile_mounts_are_none),
		cmocka_unit_test(escapes_are_octal),
		cmocka_unit_test(control_groups_are_found),
		cmocka_unit_test(limits_are_numbers_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
