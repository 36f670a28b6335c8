/* The first process of a sandbox: what is orphaned there is reaped by it, for as long as it lives.
 */
#include <signal.h>
#include <sys/wait.h>

#include "proxy/sandbox/inside/verbs.h"

int verb_idle(char **words)
{
	sigset_t set;
	int number = 0;

	(void)words;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return 1;
	while (number != SIGTERM && number != SIGINT) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (sigwait(&set, &number) != 0)
			return 1;
	}
	return 0;
}
