/* In which container the gate runs, by what the kernel shows. */
#include "gate/self.h"
#include "tests/unit/check.h"

#define ID    "4496e74e6384ed95c59871d89a4bc2f6137f7188d417239d892c6bd2c3d4f32c"
#define OTHER "7777777777777777777777777777777777777777777777777777777777777777"

static void by_control_group(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n", ID},
		{"0::/system.slice/docker-" ID ".scope\n", ID},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", ID},
		{"1:name=systemd:/docker/" OTHER "/docker/" ID "\n", ID},
		{"3:cpu,cpuacct:/kubepods/besteffort/pod1/" ID, ID},
		{"0::/\n", ""},
		{"0::/system.slice/sallyport.service\n", ""},
		{"0::/user.slice/" ID "0\n", ""},
		{"0::/docker/4496E74E\n", ""},
		{ID "\n", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char got[SELF_ID_MAX + 1] = "";

		CHECK_INT(rows[i].text, *rows[i].want != '\0',
			  self_in_cgroup(span_of(rows[i].text), got));
		CHECK_STR(rows[i].text, rows[i].want, got);
	}
}

static void by_files_that_the_engine_mounts(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"661 656 0:49 / /proc rw - proc proc rw\n"
		 "676 656 254:1 /var/lib/docker/containers/" ID
		 "/resolv.conf /etc/resolv.conf rw - ext4 /dev/vda1 rw\n",
		 ID},
		{"1 2 254:1 /containers/" ID "/hostname /etc/hostname rw - ext4 /dev/vda1 rw", ID},
		{"1 2 254:1 /var/lib/docker/containers/" ID
		 "/hosts /mnt/hosts rw - ext4 /dev/vda1 rw\n",
		 ""},
		{"1 2 254:1 /srv/" ID "/hosts /etc/hosts rw - ext4 /dev/vda1 rw\n", ""},
		{"1 2 0:3 /var/lib/docker/containers/" OTHER "/mounts/shm /shm rw - tmpfs\n", ""},
		{"1 2\n", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char got[SELF_ID_MAX + 1] = "";

		CHECK_INT(rows[i].text, *rows[i].want != '\0',
			  self_in_mounts(span_of(rows[i].text), got));
		CHECK_STR(rows[i].text, rows[i].want, got);
	}
}

static void by_its_host_name(void **state)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{"4496e74e6384", "4496e74e6384"},
		{"4496e74e638", ""},
		{"4496e74e6384e", ""},
		{"sallyport", ""},
		{"4496E74E6384", ""},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char got[SELF_ID_MAX + 1] = "";

		CHECK_INT(rows[i].name, *rows[i].want != '\0', self_in_hostname(rows[i].name, got));
		CHECK_STR(rows[i].name, rows[i].want, got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_control_group),
		cmocka_unit_test(by_files_that_the_engine_mounts),
		cmocka_unit_test(by_its_host_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
