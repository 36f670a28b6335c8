#include "gate/privs.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>

#define ROLE_EACH ROLE_COUNT

struct row {
	unsigned role; /* enum role, or ROLE_EACH */
	struct confine_call call;
	const char *reason;
	bool sanitizer_only, tcp_only;
};

static bool reaches_tcp;

static const struct row rows[] = {
#define SYSCALL(role, name, reason)             {ROLE_##role, {#name, -1, 0}, reason, false, false},
#define SYSCALL_IF(role, name, arg, v, reason)  {ROLE_##role, {#name, arg, v}, reason, false, false},
#define SYSCALL_TCP(role, name, arg, v, reason) {ROLE_##role, {#name, arg, v}, reason, false, true},
#define SYSCALL_ASAN(role, name, reason)        {ROLE_##role, {#name, -1, 0}, reason, true, false},
#include "gate/syscalls.def"
#undef SYSCALL
#undef SYSCALL_IF
#undef SYSCALL_TCP
#undef SYSCALL_ASAN
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static const char *const role_names[] = {"supervisor", "worker", "auditor", "resolver", "reader",
					 "watcher",    "admin",  "sandbox", "keeper"};
_Static_assert(sizeof(role_names) / sizeof(*role_names) == ROLE_COUNT, "a name each");

const char *role_name(enum role role)
{
	return role_names[role];
}

bool privs_row(size_t i, struct privs_row *ret)
{
	if (i >= ROWS)
		return false;
	*ret = (struct privs_row){
		.role = rows[i].role == ROLE_EACH ? "each" : role_names[rows[i].role],
		.name = rows[i].call.name,
		.reason = rows[i].reason,
		.limited = rows[i].call.arg >= 0,
		.value = rows[i].call.value,
	};
	return true;
}

/*
 * The resolver must see every path, and what an engine started, so the supervisor
 * has to keep what it hands on to a new one; it does not use it itself.
 */
#define RESOLVER_CAPS (CONFINE_CAP(CAP_DAC_READ_SEARCH) | CONFINE_CAP(CAP_SYS_PTRACE))
#define SUPERVISOR_CAPS                                                                            \
	(CONFINE_CAP(CAP_SETUID) | CONFINE_CAP(CAP_SETGID) | CONFINE_CAP(CAP_CHOWN) |              \
	 CONFINE_CAP(CAP_KILL))

int privs_become(enum role role, const struct confine_ids *ids, struct err *err)
{
	uint64_t keep = role == ROLE_RESOLVER ? RESOLVER_CAPS : 0;

	if (role == ROLE_SUPERVISOR) {
		assert(!ids);
		if (confine_caps(SUPERVISOR_CAPS | RESOLVER_CAPS, SUPERVISOR_CAPS, err) < 0)
			return -1;
	} else if ((ids ? confine_become(ids, keep, err) : confine_caps(keep, keep, err)) < 0) {
		return -1;
	}
	if (confine_no_new_privs(err) < 0)
		return -1;
	return confine_no_dumps(err);
}

int privs_read(struct err *err)
{
	const uint64_t caps = SUPERVISOR_CAPS | CONFINE_CAP(CAP_DAC_READ_SEARCH);

	return confine_caps(caps, caps, err);
}

static bool belongs_to(const struct row *row, enum role role)
{
	if (row->sanitizer_only && !PRIVS_SANITIZED)
		return false;
	if (row->tcp_only && !reaches_tcp && role != ROLE_SUPERVISOR)
		return false;
	return role == ROLE_SUPERVISOR || row->role == ROLE_EACH || row->role == role;
}

void privs_reach_tcp(void)
{
	reaches_tcp = true;
}

int privs_filter(enum role role, struct err *err)
{
	struct confine_call calls[ROWS];
	size_t count = 0;

	for (size_t i = 0; i < ROWS; i++)
		if (belongs_to(&rows[i], role))
			calls[count++] = rows[i].call;
	if (confine_calls(calls, count, err) < 0)
		return err_wrap(err, "%s", role_name(role));
	return 0;
}
