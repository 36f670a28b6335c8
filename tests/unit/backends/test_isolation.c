/* What a service says of a runtime, what a request asks for, and the level that is left. */
#include "backends/isolation.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

#define ARENA_BYTES 65536

#define NONE    ISOLATION_NONE
#define PROCESS ISOLATION_PROCESS
#define KERNEL  ISOLATION_KERNEL
#define VM      ISOLATION_VM

/* --- runtimes --- */

struct runtime_row {
	const char *name; /* as people call it: proves nothing */
	const char *path, *type, *handler;
	const char *args;    /* by spaces */
	const char *options; /* KEY=VALUE by spaces */
	bool hidden;         /* the service does not show the arguments */
	enum isolation base, level;
	const char *from, *program;
	const char *line; /* in what follows there is this; NULL: there is nothing */
};

#define TYPE(type, base, level, program, line)                                                     \
	{                                                                                          \
		"", NULL, type, NULL, "", "", false, base, level, "type", program, line            \
	}
#define HANDLER(name, base, level, program, line)                                                  \
	{                                                                                          \
		"", NULL, NULL, name, "", "", false, base, level, "handler", program, line         \
	}
#define PATH(path, base, level, program, line)                                                     \
	{                                                                                          \
		"", path, NULL, NULL, "", "", false, base, level, "path", program, line            \
	}
#define ARGS(path, args, base, level, line)                                                        \
	{                                                                                          \
		"", path, NULL, NULL, args, "", false, base, level, "path", path, line             \
	}
#define OPTIONS(type, options, base, level, from, program, line)                                   \
	{                                                                                          \
		"", NULL, type, NULL, "", options, false, base, level, from, program, line         \
	}

#define RUNC_SHIM  "io.containerd.runc.v2"
#define RUNSC_SHIM "io.containerd.runsc.v1"
#define KATA_SHIM  "io.containerd.kata.v2"

static const struct runtime_row runtime_rows[] = {
	/* programs */
	PATH("runc", PROCESS, PROCESS, "runc", NULL),
	PATH("/usr/sbin/runc", PROCESS, PROCESS, "runc", NULL),
	PATH("docker-runc", PROCESS, PROCESS, "docker-runc", NULL),
	PATH("/usr/bin/crun", PROCESS, PROCESS, "crun", NULL),
	PATH("/opt/youki", PROCESS, PROCESS, "youki", NULL),
	PATH("/usr/bin/runsc", KERNEL, KERNEL, "runsc", NULL),
	PATH("/opt/kata/bin/kata-runtime", VM, VM, "kata-runtime", NULL),
	PATH("/opt/kata/bin/containerd-shim-kata-v2", VM, VM, "kata", NULL),
	PATH("sallyport-confined", PROCESS, PROCESS, "sallyport-confined", NULL),
	PATH("sallyport-bare", NONE, NONE, "sallyport-bare", NULL),

	/* a name that lies */
	{"gvisor", "runc", NULL, NULL, "", "", false, PROCESS, PROCESS, "path", "runc", NULL},
	{"kata", "/usr/bin/runc", NULL, NULL, "", "", false, PROCESS, PROCESS, "path", "runc",
	 NULL},
	{"runc", "/usr/bin/runsc", NULL, NULL, "", "", false, KERNEL, KERNEL, "path", "runsc",
	 NULL},
	{"gvisor", NULL, RUNC_SHIM, NULL, "", "", false, PROCESS, PROCESS, "type", "runc", NULL},

	/* a wrapper, or a program of another name */
	PATH("/usr/bin/nvidia-container-runtime", NONE, NONE, "nvidia-container-runtime", NULL),
	PATH("/usr/local/bin/runsc-wrapper", NONE, NONE, "", NULL),
	PATH("/usr/local/bin/runsc.sh", NONE, NONE, "", NULL),
	PATH("/runsc/bash", NONE, NONE, "", NULL),
	PATH("/usr/bin/kata-evil.sh", NONE, NONE, "", NULL),
	PATH("/tmp/sallyport-confined", NONE, NONE, "", NULL),
	PATH("RUNSC", NONE, NONE, "", NULL),
	PATH("runsc ", NONE, NONE, "", NULL),
	PATH("runsc/", NONE, NONE, "", NULL),
	PATH("/usr/bin/runc-debug", NONE, NONE, "", NULL),
	PATH("containerd-shim-kata-v2", NONE, NONE, "", NULL),
	{"x", NULL, NULL, NULL, "", "", false, NONE, NONE, "", "", NULL},
	{"x", "", "", "", "", "", false, NONE, NONE, "", "", NULL},

	/* shims */
	TYPE(RUNC_SHIM, PROCESS, PROCESS, "runc", NULL),
	TYPE("io.containerd.runc.v1", PROCESS, PROCESS, "runc", NULL),
	TYPE(RUNSC_SHIM, KERNEL, KERNEL, "runsc", NULL),
	TYPE(KATA_SHIM, VM, VM, "kata", NULL),
	TYPE("io.containerd.kata-qemu.v2", VM, VM, "kata-qemu", NULL),
	TYPE("io.containerd.kata-clh.v2", VM, VM, "kata-clh", NULL),
	TYPE("io.containerd.kata-fc.v12", VM, VM, "kata-fc", NULL),
	TYPE("io.containerd.kata-dragonball.v2", VM, VM, "kata-dragonball", NULL),
	TYPE("io.containerd.kata-stratovirt.v2", VM, VM, "kata-stratovirt", NULL),
	TYPE("aws.firecracker", VM, VM, "aws.firecracker", NULL),
	TYPE("/usr/local/bin/containerd-shim-runsc-v1", KERNEL, KERNEL, "runsc", NULL),
	TYPE("/usr/local/bin/containerd-shim-evil-v1", NONE, NONE, "", NULL),
	TYPE("/usr/local/bin/runsc", NONE, NONE, "", NULL),
	TYPE("io.containerd.runsc", NONE, NONE, "", NULL),
	TYPE("io.containerd.runsc.v", NONE, NONE, "", NULL),
	TYPE("io.containerd.runsc.v1.evil.v1", NONE, NONE, "", NULL),
	TYPE("io.containerd..v1", NONE, NONE, "", NULL),
	TYPE("io.containerd.v1", NONE, NONE, "", NULL),
	TYPE("com.example.runsc.v1", NONE, NONE, "", NULL),
	TYPE("runsc", NONE, NONE, "", NULL),
	TYPE("v1", NONE, NONE, "", NULL),

	/* variants for debugging */
	TYPE("io.containerd.kata-qemu-debug.v2", VM, KERNEL, "kata-qemu", "variant"),
	TYPE("io.containerd.kata-devkit.v2", VM, KERNEL, "kata", "variant"),
	TYPE("io.containerd.runsc-debug.v1", NONE, NONE, "", NULL),
	HANDLER("kata-clh-debug", VM, KERNEL, "kata-clh", "variant"),

	/* handlers of RuntimeClasses */
	HANDLER("runc", PROCESS, PROCESS, "runc", NULL),
	HANDLER("crun", PROCESS, PROCESS, "crun", NULL),
	HANDLER("runsc", KERNEL, KERNEL, "runsc", NULL),
	HANDLER("gvisor", KERNEL, KERNEL, "gvisor", NULL),
	HANDLER("kata", VM, VM, "kata", NULL),
	HANDLER("kata-qemu", VM, VM, "kata-qemu", NULL),
	HANDLER("kata-qemu-snp", VM, VM, "kata-qemu-snp", NULL),
	HANDLER("kata-remote", VM, VM, "kata-remote", NULL),
	HANDLER("my-secure-class", NONE, NONE, "", NULL),

	/* the image of a krun machine has a say in what the machine is */
	PATH("/usr/bin/krun", VM, KERNEL, "krun", "krun_vm.json"),

	/* arguments */
	ARGS("runsc", "--network=none --platform=ptrace --ignore-cgroups", KERNEL, KERNEL,
	     "ignore-cgroups"),
	ARGS("runsc", "--network=host", KERNEL, PROCESS, "network = host"),
	ARGS("runsc", "-network host", KERNEL, PROCESS, "network = host"),
	ARGS("runsc", "--network=none --network=host", KERNEL, PROCESS, "network = host"),
	ARGS("runsc", "--network=HOST", KERNEL, PROCESS, "network = HOST"),
	ARGS("runsc", "--host-uds=open", KERNEL, PROCESS, "host-uds = open"),
	ARGS("runsc", "--host-uds=none", KERNEL, KERNEL, NULL),
	ARGS("runsc", "--host-fifo=open", KERNEL, PROCESS, "host-fifo"),
	ARGS("runsc", "--fsgofer-host-uds", KERNEL, PROCESS, "fsgofer-host-uds"),
	ARGS("runsc", "--character-device-policy=passthrough", KERNEL, PROCESS, "character-device"),
	ARGS("runsc", "--gofer-network-namespace=host", KERNEL, PROCESS, "gofer-network"),
	ARGS("runsc", "--allow-flag-override", KERNEL, PROCESS, "allow-flag-override"),
	ARGS("runsc", "--allow-rootfs-tar-annotation", KERNEL, PROCESS, "allow-rootfs-tar"),
	ARGS("runsc", "--profile", KERNEL, PROCESS, "profile"),
	ARGS("runsc", "--TESTONLY-unsafe-nonroot", KERNEL, PROCESS, "TESTONLY"),
	ARGS("runsc", "--net-raw", KERNEL, KERNEL, "net-raw"),
	ARGS("runsc", "--overlay2=none", KERNEL, KERNEL, "overlay2 = none"),
	ARGS("runsc", "--nvproxy", KERNEL, KERNEL, "gpu-passthrough"),
	ARGS("runsc", "--nvproxy=false --tpuproxy=false", KERNEL, KERNEL, NULL),
	ARGS("runsc", "--rdmaproxy", KERNEL, KERNEL, "RDMA"),
	ARGS("runsc", "--brand-new", KERNEL, PROCESS, "does not know it"),
	ARGS("runsc", "do", KERNEL, PROCESS, "cannot read"),
	ARGS("runsc",
	     "--net-raw --net-raw --net-raw --net-raw --net-raw --net-raw --net-raw "
	     "--net-raw --net-raw",
	     KERNEL, NONE, "net-raw"),
	ARGS("runc", "--debug --systemd-cgroup --log-format json --root /run/x", PROCESS, PROCESS,
	     NULL),
	ARGS("runc", "--brand-new", PROCESS, NONE, "brand-new"),
	ARGS("runc", "--criu /tmp/evil", PROCESS, NONE, "criu = /tmp/evil"),
	ARGS("crun", "--cgroup-manager=systemd", PROCESS, PROCESS, NULL),
	ARGS("krun", "--brand-new", VM, PROCESS, "brand-new"),
	ARGS("kata-runtime", "--config /x.toml", VM, PROCESS, "config = /x.toml"),
	ARGS("kata-runtime", "--log=/x", VM, VM, NULL),
	{"x", "runsc", NULL, NULL, "", "", true, KERNEL, PROCESS, "path", "runsc", "does not show"},
	{"x", "kata-runtime", NULL, NULL, "", "", true, VM, PROCESS, "path", "kata-runtime",
	 "does not show"},
	{"x", "crun", NULL, NULL, "", "", true, PROCESS, PROCESS, "path", "crun", NULL},

	/* options */
	OPTIONS(RUNC_SHIM, "BinaryName=/usr/bin/crun", PROCESS, PROCESS, "options.BinaryName",
		"crun", NULL),
	OPTIONS(RUNC_SHIM, "BinaryName=/x/evil", NONE, NONE, "options.BinaryName", "", NULL),
	OPTIONS(RUNC_SHIM, "BinaryName=/usr/bin/runsc", KERNEL, KERNEL, "options.BinaryName",
		"runsc", NULL),
	OPTIONS(RUNSC_SHIM, "BinaryName=/usr/bin/runsc", KERNEL, KERNEL, "options.BinaryName",
		"runsc", NULL),
	OPTIONS(RUNSC_SHIM, "BinaryName=/usr/bin/runc", NONE, NONE, "options.BinaryName", "", NULL),
	OPTIONS(KATA_SHIM, "BinaryName=/bin/true", NONE, NONE, "options.BinaryName", "", NULL),
	OPTIONS("io.containerd.evil.v1", "BinaryName=runc", NONE, NONE, "options.BinaryName", "",
		NULL),
	OPTIONS(RUNC_SHIM, "SystemdCgroup=true TypeUrl=x Root=/r NoPivotRoot=false", PROCESS,
		PROCESS, "type", "runc", NULL),
	OPTIONS(RUNC_SHIM, "NoPivotRoot=true", PROCESS, NONE, "type", "runc", "NoPivotRoot"),
	OPTIONS(RUNC_SHIM, "NoNewKeyring=true", PROCESS, NONE, "type", "runc", "keyring"),
	OPTIONS(RUNC_SHIM, "CriuPath=/x", PROCESS, NONE, "type", "runc", "CriuPath"),
	OPTIONS(RUNC_SHIM, "BrandNew=1", PROCESS, NONE, "type", "runc", "BrandNew = 1"),
	OPTIONS(RUNC_SHIM, "BrandNew=false", PROCESS, PROCESS, "type", "runc", NULL),
	OPTIONS(RUNSC_SHIM, "ConfigPath=/etc/runsc.toml", KERNEL, PROCESS, "type", "runsc",
		"cannot see"),
	OPTIONS(RUNSC_SHIM, "ConfigBody=bmV0", KERNEL, PROCESS, "type", "runsc", "does not read"),
	OPTIONS(KATA_SHIM, "ConfigPath=/x.toml", VM, PROCESS, "type", "kata", "cannot see"),
	OPTIONS(KATA_SHIM, "ConfigPath=/opt/kata/share/defaults/kata-containers/configuration.toml",
		VM, VM, "type", "kata", "comes with Kata"),
	OPTIONS(KATA_SHIM, "ConfigPath=/opt/kata/share/defaults/kata-containers/../../x.toml", VM,
		PROCESS, "type", "kata", "cannot see"),

	/* two that are not the same */
	{"x", "runc", RUNC_SHIM, NULL, "", "", false, PROCESS, PROCESS, "path", "runc", NULL},
	{"x", "runsc", RUNC_SHIM, NULL, "", "", false, KERNEL, NONE, "path", "runsc", "two"},
	{"x", "runsc", NULL, NULL, "", "BinaryName=/x/y", false, KERNEL, NONE, "path", "runsc",
	 "two"},
};

static void fill(struct arena *a, const struct runtime_row *row, struct isolation_facts *ret)
{
	struct span args = span_of(row->args), options = span_of(row->options), word;
	struct span *list = arena_take(a, 16 * sizeof(*list));
	struct isolation_option *opts = arena_take(a, 8 * sizeof(*opts));

	*ret = (struct isolation_facts){
		.path = row->path,
		.type = row->type,
		.handler = row->handler,
		.args = list,
		.options = opts,
		.args_known = !row->hidden && !row->handler,
	};
	while (args.len) {
		span_cut(&args, ' ', &word);
		list[ret->arg_count++] = word;
	}
	while (options.len) {
		struct isolation_option *o = &opts[ret->option_count++];
		struct span key;

		span_cut(&options, ' ', &word);
		span_cut(&word, '=', &key);
		o->key = arena_strndup(a, key.at, key.len);
		o->value = arena_strndup(a, word.at, word.len);
	}
}

/* For people: what is in the table of lines, and in the derivation. */
static bool says(const struct isolation_weighed *w, const char *want)
{
	const struct isolation_runtime rt = {"x", "said", *w};
	char text[8192];
	struct buf out;
	bool has;

	buf_init(&out, sizeof(text));
	isolation_derive_runtime(&rt, "", &out);
	snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(&out)));
	has = strstr(text, want) != NULL;
	buf_fini(&out);
	return has;
}

static void weighs_runtimes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(runtime_rows) / sizeof(*runtime_rows); i++) {
		const struct runtime_row *row = &runtime_rows[i];
		struct arena *a = arena_create(ARENA_BYTES);
		struct isolation_facts facts;
		struct isolation_weighed w;
		char name[256];

		snprintf(name, sizeof(name), "%s: %s%s%s %s%s", row->name,
			 row->path ? row->path : "", row->type ? row->type : "",
			 row->handler ? row->handler : "", row->args, row->options);
		fill(a, row, &facts);
		isolation_weigh(a, &facts, &w);
		CHECK_INT(name, row->base, w.base);
		CHECK_INT(name, row->level, w.level);
		CHECK_STR(name, row->from, w.from);
		CHECK_STR(name, row->program, w.program);
		CHECK_INT(name, row->line != NULL, w.line_count > 0);
		if (row->line)
			CHECK_INT(name, true, says(&w, row->line));
		arena_destroy(a);
	}
}

/* What is no text among the arguments; and memory that is zero says nothing good. */
static void trusts_nothing_unsaid(void **state)
{
	struct isolation_facts facts = {
		.path = "runsc", .args_known = true, .args_unreadable = true};
	struct arena *a = arena_create(ARENA_BYTES);
	struct isolation_weighed w;

	(void)state;
	isolation_weigh(a, &facts, &w);
	assert_int_equal(w.level, PROCESS);
	facts = (struct isolation_facts){.path = NULL};
	isolation_weigh(a, &facts, &w);
	assert_int_equal(w.level, NONE);
	arena_destroy(a);
}

/* A line says what is left after all before it, and what it would leave alone. */
static void keeps_what_each_does(void **state)
{
	const struct span args[] = {span_of("--brand-new"), span_of("--ignore-cgroups"),
				    span_of("--network=host")};
	const struct isolation_facts facts = {
		.path = "runsc", .args = args, .arg_count = 3, .args_known = true};
	struct arena *a = arena_create(ARENA_BYTES);
	struct isolation_weighed w;

	(void)state;
	isolation_weigh(a, &facts, &w);
	assert_int_equal(w.line_count, 3);
	assert_true(w.lines[0].unknown);
	assert_int_equal(w.lines[1].to, PROCESS);
	assert_int_equal(w.lines[1].alone, KERNEL);
	assert_int_equal(w.lines[2].alone, PROCESS);
	assert_false(w.lines[1].unknown || w.lines[2].unknown);
	arena_destroy(a);
}

/* --- what a request does --- */

static void lowers(void **state)
{
	static const struct {
		enum isolation_lower why;
		enum isolation from_process, from_kernel, from_vm;
	} rows[] = {
		{LOWER_PRIVILEGED, NONE, NONE, NONE},
		{LOWER_EXEC_PRIVILEGED, NONE, NONE, NONE},
		{LOWER_PROC_PATHS, NONE, NONE, NONE},
		{LOWER_SECCOMP_OTHER, NONE, PROCESS, KERNEL},
		{LOWER_APPARMOR_OFF, NONE, PROCESS, KERNEL},
		{LOWER_LABELS_OFF, NONE, PROCESS, KERNEL},
		{LOWER_CGROUPS_WRITABLE, NONE, PROCESS, KERNEL},
		{LOWER_PID_HOST, NONE, NONE, NONE},
		{LOWER_PID_HOST_DROPPED, NONE, PROCESS, KERNEL},
		{LOWER_IPC_HOST, NONE, PROCESS, KERNEL},
		{LOWER_USER_HOST, NONE, PROCESS, KERNEL},
		{LOWER_NETWORK_HOST, NONE, PROCESS, KERNEL},
		{LOWER_DEVICE, NONE, NONE, NONE},
		{LOWER_PATH, NONE, NONE, NONE},
		{LOWER_SOCKET, NONE, NONE, NONE},
		{LOWER_BUILDKIT, PROCESS, PROCESS, PROCESS},
		{LOWER_KRUN_IMAGE, PROCESS, KERNEL, KERNEL},
		{LOWER_KRUN_EXEC, PROCESS, PROCESS, PROCESS},
		{LOWER_KATA_DEBUG, NONE, PROCESS, KERNEL},
		{LOWER_ARGS_HIDDEN, PROCESS, PROCESS, PROCESS},
		{LOWER_ARG_UNREADABLE, PROCESS, PROCESS, PROCESS},
		{LOWER_ARG_UNKNOWN, PROCESS, PROCESS, PROCESS},
		{LOWER_ARG_OF_CONTAINER, NONE, NONE, NONE},
		{LOWER_OPTION_UNKNOWN, NONE, NONE, NONE},
		{LOWER_PROGRAMS_DIFFER, NONE, NONE, NONE},
		{LOWER_SERVICE_SECCOMP_OFF, NONE, PROCESS, KERNEL},
		{LOWER_ROOTLESS, PROCESS, KERNEL, VM},
		{LOWER_USERNS, PROCESS, KERNEL, VM},
	};

	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(*rows), LOWER_COUNT);
	for (size_t i = 0; i < LOWER_COUNT; i++) {
		const struct isolation_reason *why = isolation_reason(rows[i].why);

		assert_int_equal(rows[i].why, i);
		CHECK_INT(why->why, NONE, isolation_left(NONE, why));
		CHECK_INT(why->why, rows[i].from_process, isolation_left(PROCESS, why));
		CHECK_INT(why->why, rows[i].from_kernel, isolation_left(KERNEL, why));
		CHECK_INT(why->why, rows[i].from_vm, isolation_left(VM, why));
		CHECK_STR(why->why, why->source, isolation_source(why->why));
		CHECK_INT(why->why, true, *why->source != '\0');
	}
}

static void knows_strong_capabilities(void **state)
{
	static const char *const strong[] = {
		"ALL",      "BPF",        "DAC_READ_SEARCH", "NET_ADMIN", "PERFMON", "SYS_ADMIN",
		"SYS_BOOT", "SYS_MODULE", "SYS_PTRACE",      "SYS_RAWIO", "SYSLOG",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(strong) / sizeof(*strong); i++) {
		const struct isolation_reason *why = isolation_capability(strong[i]);

		CHECK_INT(strong[i], true, why != NULL);
		CHECK_INT(strong[i], NONE, isolation_left(VM, why));
	}
	assert_null(isolation_capability("CHOWN"));
	assert_null(isolation_capability("CAP_SYS_ADMIN"));
	assert_null(isolation_capability(""));
}

static void weighs_annotations(void **state)
{
	static const struct {
		const char *name, *value;
		enum isolation left; /* of a machine */
	} rows[] = {
		{"run.oci.handler", "krun", PROCESS},
		{"run.oci.seccomp.plugins", "/x.so", NONE},
		{"run.oci.seccomp_bpf_data", "AAAA", NONE},
		{"run.oci.seccomp.receiver", "/s", NONE},
		{"run.oci.keep_original_groups", "1", NONE},
		{"run.oci.hooks.stdout", "/etc/x", NONE},
		{"run.oci.hooks.stderr", "/etc/x", NONE},
		{"run.oci.pidfd_receiver", "/s", NONE},
		{"run.oci.delegate-cgroup", "/", NONE},
		{"run.oci.systemd.force_cgroup_v1", "/x", NONE},
		{"run.oci.mount_context_type", "x", NONE},
		{"run.oci.brand_new", "x", NONE},
		{"org.systemd.property.DeviceAllow", "x", NONE},
		{"org.criu.config", "/x", NONE},
		{"krun.cpus", "4", VM},
		{"krun.ram_mib", "64", VM},
		{"krun.gpu_flags", "1", KERNEL},
		{"krun.nested_virt", "1", KERNEL},
		{"krun.variant", "sev", PROCESS},
		{"dev.gvisor.flag.host-uds", "open", PROCESS},
		{"dev.gvisor.flag.host-uds", "none", KERNEL},
		{"dev.gvisor.flag.network", "host", PROCESS},
		{"dev.gvisor.flag.debug", "true", KERNEL},
		{"dev.gvisor.flag.brand-new", "true", PROCESS},
		{"dev.gvisor.spec.mount.a.share", "shared", PROCESS},
		{"dev.gvisor.tar.rootfs.upper", "/x", PROCESS},
		{"io.katacontainers.config.hypervisor.path", "/x", NONE},
		{"io.katacontainers.config.hypervisor.jailer_path", "/x", NONE},
		{"io.katacontainers.config.hypervisor.virtio_fs_daemon", "/x", NONE},
		{"io.katacontainers.config.hypervisor.virtio_fs_extra_args", "x", NONE},
		{"io.katacontainers.config.hypervisor.kernel", "/x", PROCESS},
		{"io.katacontainers.config.hypervisor.default_vcpus", "2", VM},
		{"io.katacontainers.config.runtime.disable_guest_seccomp", "true", KERNEL},
		{"io.katacontainers.config.runtime.disable_guest_seccomp", "false", VM},
		{"io.katacontainers.config.runtime.disable_new_netns", "true", PROCESS},
		{"io.katacontainers.config.agent.kernel_modules", "x", KERNEL},
		{"io.katacontainers.config.brand_new", "x", PROCESS},
		{"cdi.k8s.io/gpu", "nvidia.com/gpu=0", NONE},
		{"nvidia.cdi.k8s.io/x", "nvidia.com/gpu=all", NONE},
		{"module.wasm.image/variant", "compat", PROCESS},
		{"org.opencontainers.image.stopSignal", "15", VM},
		{"io.container.manager", "libpod", VM},
		{"com.example.anything", "x", NONE},
		{"", "", NONE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct isolation_reason *why =
			isolation_annotation(span_of(rows[i].name), span_of(rows[i].value));

		CHECK_INT(rows[i].name, rows[i].left, isolation_left(VM, why));
	}
}

/* --- for people --- */

static void derives_line_by_line(void **state)
{
	static const char facts[] =
		"{\"level\":\"none\",\"base\":\"kernel\",\"runtime\":\"gvisor\",\"from\":\"path\","
		"\"runtime_path\":\"/usr/bin/runsc\",\"program\":\"runsc\",\"lowered\":["
		"{\"field\":\"Runtimes.gvisor.ignore-cgroups\",\"value\":\"\",\"to\":\"kernel\","
		"\"why\":\"limits are not applied\"},"
		"{\"field\":\"Runtimes.gvisor.network\",\"value\":\"host\",\"to\":\"process\","
		"\"why\":\"the host's network stack is used\"},"
		"{\"field\":\"HostConfig.Privileged\",\"value\":\"true\",\"to\":\"none\","
		"\"why\":\"privileged mode gives the container the host\"}],"
		"\"adds\":[\"user ids are mapped: root of a container is no user of the host; the "
		"kernel that it can reach is the same\"]}";
	static const char want[] =
		"  base     kernel: runtime 'gvisor': its path is /usr/bin/runsc: runsc: gVisor: a "
		"kernel of its own, in user space (gVisor: Security Model)\n"
		"  keeps    Runtimes.gvisor.ignore-cgroups: limits are not applied (gVisor: "
		"runsc/config/flags.go); kernel is left\n"
		"  lowered  Runtimes.gvisor.network = host: the host's network stack is used "
		"(gVisor: runsc/config/flags.go); process is left\n"
		"  lowered  HostConfig.Privileged = true: privileged mode gives the container the "
		"host (Docker: docker run, Runtime privilege); none is left\n"
		"  adds     user ids are mapped: root of a container is no user of the host; the "
		"kernel that it can reach is the same (Docker: Isolate containers with a user "
		"namespace; user_namespaces(7)); the level stays\n"
		"  result   none\n";
	struct arena *a = arena_create(ARENA_BYTES);
	struct err err = {0};
	enum jv_fault fault;
	struct buf out;
	struct jv doc;
	char text[4096];

	(void)state;
	assert_int_equal(jv_parse(a, span_of(facts), &doc, &fault, &err), 0);
	buf_init(&out, sizeof(text));
	isolation_derive(&doc, "  ", &out);
	snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(&out)));
	assert_string_equal(text, want);
	buf_fini(&out);
	arena_destroy(a);
}

static void takes_the_best_of_a_service(void **state)
{
	struct isolation_service s = {.runtimes = {{"runc", "runc", {.level = PROCESS}},
						   {"g", "runsc", {.level = KERNEL}}},
				      .runtime_count = 2};

	(void)state;
	assert_int_equal(isolation_best(&s), KERNEL);
	s.notes[s.note_count++] = LOWER_USERNS;
	assert_int_equal(isolation_best(&s), KERNEL);
	s.notes[s.note_count++] = LOWER_SERVICE_SECCOMP_OFF;
	assert_int_equal(isolation_best(&s), PROCESS);
	s.runtime_count = 0;
	assert_int_equal(isolation_best(&s), NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weighs_runtimes),
		cmocka_unit_test(trusts_nothing_unsaid),
		cmocka_unit_test(keeps_what_each_does),
		cmocka_unit_test(lowers),
		cmocka_unit_test(knows_strong_capabilities),
		cmocka_unit_test(weighs_annotations),
		cmocka_unit_test(derives_line_by_line),
		cmocka_unit_test(takes_the_best_of_a_service),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
