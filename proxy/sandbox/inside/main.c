/* The program inside a sandbox; frames.h says what it does. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

static const struct {
	const char *name;
	int (*run)(char **words);
} verbs[] = {
	{"idle", verb_idle},     {"run", verb_run},         {"get", verb_get},
	{"put", verb_put},       {"list", verb_list},       {"stat", verb_stat},
	{"remove", verb_remove}, {"mkdir", verb_mkdir},     {"tar", verb_tar},
	{"untar", verb_untar},   {"connect", verb_connect},
};

int main(int argc, char **argv)
{
	/* A program of the caller runs under the same uid: it may not look into this one. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */);
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "idle") != 0)
		wire_init();
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verbs[i].name, argv[1]) == 0)
			return verbs[i].run(argv + 2);
	return wire_fail(EINVAL, "no such verb");
}
