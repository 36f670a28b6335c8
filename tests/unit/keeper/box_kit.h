/* box_kit.h - boxes for tests: a launcher as an ordinary user, and what runs in them. */
#ifndef TESTS_UNIT_KEEPER_BOX_KIT_H
#define TESTS_UNIT_KEEPER_BOX_KIT_H

#include "gate/keeper/box.h"
#include "tests/unit/check.h"

#include <stdbool.h>

#define KIT_WAIT   60000 /* ms: for what comes at once, on a busy machine */
#define KIT_BINDS  8
#define KIT_OUTPUT 65536

/*
 * Runs the tests as kit_uid if this is root, with cgroup folders that it may use; else as who runs
 * it, without.  The program also is its own launcher.  Returns what main() shall.
 */
int kit_main(int argc, char **argv, int (*tests)(void));

extern uid_t kit_uid;    /* of this run alone, since tests run beside each other; 0: not as root */
extern int kit_launcher; /* started before the first test */
extern pid_t kit_launcher_pid;
extern const char *kit_probe; /* the path of the probe program, or NULL */

const struct box_cgroup *kit_cgroups(size_t *ret_count); /* none: 0 */

struct kit_conf {
	struct box_conf conf;
	struct box_bind binds[KIT_BINDS];
	struct box_tmpfs tmpfs[3];
	char name[32];
};
/* /usr and its like, /tmp, /work, the probe at /probe; closed by kit_conf_end(). */
void kit_conf(struct kit_conf *ret, enum box_mode mode);
void kit_conf_end(struct kit_conf *c);

struct box *kit_box(enum box_mode mode);
void kit_end(struct box *b);

struct kit_run {
	struct box_child child;
	struct box_exit exit;
	char out[KIT_OUTPUT]; /* stdout and stderr */
	struct err err;       /* of box_spawn() */
};
/* By the shell, to its end. */
const struct kit_run *kit_shell(struct box *b, const char *script);
const struct kit_run *kit_run(struct box *b, const char *const *argv, const char *const *env);
/* By the shell, without waiting. */
uint32_t kit_start(struct box *b, const char *script);
/* The end of that command (0: of the box). */
struct box_exit kit_wait(struct box *b, uint32_t id);

/* Processes of this user, but for this one, its parent and the launcher. */
unsigned kit_strays(void);
void kit_no_strays(const char *label); /* within KIT_WAIT */

#endif
