/*
 * deaths.h - a process that is killed before its n-th write to memory that processes share.
 *
 * The memory is made unwritable in a child; each write faults, is counted, and is let through by
 * a single step.  So a test can play the death between any two writes, without luck.
 */
#ifndef TESTS_UNIT_DEATHS_H
#define TESTS_UNIT_DEATHS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CAN_DIE_AT_WRITES 1
#else
#define CAN_DIE_AT_WRITES 0
#endif

#define TRAP_FLAG 0x100

static struct {
	void *at;
	size_t bytes;
	unsigned left; /* writes, until the one that does not happen any more */
	intptr_t last; /* where the last one came from */
} dying;

/* Where in the program; a copy of many bytes by one instruction is one write. */
static intptr_t writes_at(void *context)
{
#if CAN_DIE_AT_WRITES
	return (intptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
	(void)context;
	return 0;
#endif
}

static void step_once(void *context, bool on)
{
#if CAN_DIE_AT_WRITES
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	*flags = on ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
#else
	(void)context;
	(void)on;
#endif
}

static void die_on_write(int sig, siginfo_t *info, void *context)
{
	char *address = info->si_addr, *from = dying.at;

	(void)sig;
	if (address < from || address >= from + dying.bytes)
		_exit(99); /* a fault of the test's own */
	if (writes_at(context) != dying.last && !dying.left--)
		raise(SIGKILL);
	dying.last = writes_at(context);
	mprotect(dying.at, dying.bytes, PROT_READ | PROT_WRITE);
	step_once(context, true);
}

static void protect_again(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	mprotect(dying.at, dying.bytes, PROT_READ);
	step_once(context, false);
}

/* The pages that it is in: the mapping is the table's own. */
static bool find_mapping(const void *at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long from = 0, to = 0;
	bool found = false;
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%lx-%lx ", &from, &to) == 2 && (uintptr_t)at >= from &&
			(uintptr_t)at < to;
	if (maps)
		fclose(maps);
	dying.at = (void *)from; /* NOLINT(performance-no-int-to-ptr): that is what maps says */
	dying.bytes = to - from;
	return found;
}

/* True: it died before its write n (the first is 0); false: it has written all that it writes. */
static bool dies_at_write(const void *table, unsigned n, void (*what)(void *arg), void *arg,
			  pid_t *ret_pid)
{
	struct sigaction fault = {.sa_sigaction = die_on_write, .sa_flags = SA_SIGINFO};
	struct sigaction step = {.sa_sigaction = protect_again, .sa_flags = SA_SIGINFO};
	int status;

	*ret_pid = fork();
	if (*ret_pid == 0) {
		if (!find_mapping(table))
			_exit(98);
		dying.left = n;
		sigaction(SIGSEGV, &fault, NULL);
		sigaction(SIGTRAP, &step, NULL);
		mprotect(dying.at, dying.bytes, PROT_READ);
		what(arg);
		_exit(0);
	}
	waitpid(*ret_pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		_exit(97); /* the test cannot be played */
	return WIFSIGNALED(status);
}

#endif
