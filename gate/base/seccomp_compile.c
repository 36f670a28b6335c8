#include "gate/base/seccomp_priv.h"

#include <errno.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRAM_MAX ((size_t)32 << 10) /* bytes: the kernel takes 4096 instructions of 8 */

static uint32_t value_of(enum seccomp_action action, int errno_ret)
{
	uint32_t e = (uint32_t)(errno_ret < 0 ? EPERM : errno_ret);

	switch (action) {
#define ACTION(id, name, value)                                                                    \
	case SECCOMP_##id:                                                                         \
		return value;
#include "gate/base/seccomp_profile.def"
#undef ACTION
	case SECCOMP_ACTION_COUNT:
		break;
	}
	return SCMP_ACT_KILL_PROCESS;
}

static enum scmp_compare compare_of(enum seccomp_operator op)
{
	static const enum scmp_compare values[] = {
#define OPERATOR(id, name) SCMP_CMP_##id,
#include "gate/base/seccomp_profile.def"
#undef OPERATOR
	};

	return values[op];
}

static int refused(struct err *err, const char *what, int rc)
{
	return err_set(err, ERR_INPUT, "%s: libseccomp does not take it: %s", what, strerror(-rc));
}

static int add_arch(scmp_filter_ctx ctx, struct span name, struct err *err)
{
	char lower[32];
	int rc;

	for (size_t i = 0; i < name.len && i < sizeof(lower); i++)
		lower[i] = (char)(name.at[i] | (name.at[i] >= 'A' && name.at[i] <= 'Z' ? 32 : 0));
	lower[name.len] = 0; /* the parser knows it: it is short */
	rc = seccomp_arch_add(ctx, seccomp_arch_resolve_name(lower + strlen("SCMP_ARCH_")));
	return rc == 0 || rc == -EEXIST ? 0 : refused(err, lower, rc);
}

static int add_arches(scmp_filter_ctx ctx, const struct seccomp_profile *p, struct err *err)
{
	const char *machine = seccomp_this_machine();
	const char *native = machine ? seccomp_arch_of(machine) : "";

	for (size_t i = 0; i < p->arch_count; i++) {
		if (p->mapped && !span_is(p->arches[i].native, native))
			continue;
		for (size_t k = 0; k < p->arches[i].other_count; k++)
			if (add_arch(ctx, p->arches[i].others[k], err) < 0)
				return -1;
	}
	return 0;
}

static int add_name(scmp_filter_ctx ctx, const struct seccomp_rule *r,
		    const struct seccomp_name *name, struct err *err)
{
	struct scmp_arg_cmp args[SECCOMP_ARGS_MAX];
	int rc;

	if (name->nr == SECCOMP_NO_NUMBER)
		return err_set(err, ERR_INPUT, "%.*s: libseccomp knows no such system call",
			       SPAN_FMT(name->text));
	for (size_t i = 0; i < r->arg_count; i++)
		args[i] = (struct scmp_arg_cmp){r->args[i].index, compare_of(r->args[i].op),
						r->args[i].value, r->args[i].two};
	rc = seccomp_rule_add_array(ctx, value_of(r->action, r->errno_ret), name->nr,
				    (unsigned)r->arg_count, args);
	/* The same call may be listed twice. */
	return rc == 0 || rc == -EEXIST ? 0 : refused(err, name->text.at, rc);
}

/* A call that libseccomp may not know yet gets what the default says. */
static bool is_passed_over(const struct seccomp_profile *p, const struct seccomp_name *name)
{
	return name->nr == SECCOMP_NO_NUMBER && seccomp_is_newer(p, name->text);
}

static int add_rules(scmp_filter_ctx ctx, const struct seccomp_profile *p,
		     const struct seccomp_place *at, struct err *err)
{
	uint32_t usual = value_of(p->action, p->errno_ret);

	for (size_t i = 0; i < p->rule_count; i++) {
		const struct seccomp_rule *r = &p->rules[i];

		/* What is the default anyway is none for libseccomp. */
		if (!seccomp_rule_counts(p, r, at, false) ||
		    value_of(r->action, r->errno_ret) == usual)
			continue;
		for (size_t n = 0; n < r->name_count; n++)
			if (!is_passed_over(p, &r->names[n]) &&
			    add_name(ctx, r, &r->names[n], err) < 0)
				return err_wrap(err, "syscalls[%zu]", i);
	}
	return 0;
}

static int export(scmp_filter_ctx ctx, struct buf *ret, struct err *err)
{
	int fd = memfd_create("seccomp", MFD_CLOEXEC), rc;
	ssize_t got = 0;
	char *room;

	if (fd < 0)
		return err_sys(err, "room for a filter of system calls");
	rc = seccomp_export_bpf(ctx, fd);
	room = rc == 0 ? buf_reserve(ret, PROGRAM_MAX + 1) : NULL;
	if (room)
		got = pread(fd, room, PROGRAM_MAX + 1, 0);
	close(fd);
	if (rc < 0)
		return refused(err, "the whole", rc);
	if (!room || got <= 0 || got > (ssize_t)PROGRAM_MAX || got % 8)
		return err_set(
			err, ERR_INPUT,
			"the filter has more than the 4096 instructions that the kernel takes");
	buf_commit(ret, (size_t)got);
	return 0;
}

int seccomp_profile_bpf(const struct seccomp_profile *p, uint64_t capabilities, struct buf *ret,
			struct err *err)
{
	struct seccomp_place at = {.capabilities = capabilities};
	const char *unclear = seccomp_profile_unclear(p, &at, 0);
	scmp_filter_ctx ctx;
	int rc;

	/* Of some of them libseccomp makes another filter, and over some it never ends. */
	if (unclear)
		return err_set(err, ERR_INPUT, "%s: its rules can be read in two ways", unclear);
	ctx = seccomp_init(value_of(p->action, p->errno_ret));
	if (!ctx)
		return err_set(err, ERR_SYSTEM, "no memory for a filter of system calls");
	seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree, not a list */
	rc = add_arches(ctx, p, err);
	if (rc == 0)
		rc = add_rules(ctx, p, &at, err);
	if (rc == 0)
		rc = export(ctx, ret, err);
	seccomp_release(ctx);
	return rc;
}
