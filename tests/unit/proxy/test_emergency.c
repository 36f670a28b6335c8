/* The table of what is above the rules: who may write it, what readers see, its bounds. */
#include "proxy/emergency.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing_is_known_before_it_is_published(void **state)
{
	struct err err = {0};
	struct emergency *t = emergency_create(&err);
	struct emergency_view view = {0}, writer = {0};

	(void)state;
	CHECK_INT("nothing new", false, emergency_look(t, &view));
	CHECK_INT("not known", 0, view.turn);
	emergency_publish(t, &writer);
	CHECK_INT("new", true, emergency_look(t, &view));
	CHECK_INT("known", 1, view.turn);
	CHECK_INT("once", false, emergency_look(t, &view));
	CHECK_INT("nobody", true, emergency_quarantine(&view, "a") == NULL);
	emergency_destroy(t);
}

static void readers_see_what_is_in_force(void **state)
{
	struct err err = {0};
	struct emergency *t = emergency_create(&err);
	struct emergency_view view = {0}, writer = {0};
	const struct quarantine *q;

	(void)state;
	CHECK_INT("a", true, emergency_begin(&writer, "a", "INC-1", false) != NULL);
	CHECK_INT("b", true, emergency_begin(&writer, "uid-7@main", "INC-2", true) != NULL);
	emergency_publish(t, &writer);
	emergency_look(t, &view);
	q = emergency_quarantine(&view, "a");
	CHECK_STR("ticket", "INC-1", q->ticket);
	CHECK_INT("kill", 0, q->kill);
	CHECK_INT("b", 1, emergency_quarantine(&view, "uid-7@main")->kill);
	CHECK_INT("part of a name", true, emergency_quarantine(&view, "uid-7@mai") == NULL);
	CHECK_INT("empty", true, emergency_quarantine(&view, "") == NULL);
	emergency_begin(&writer, "a", "INC-3", true);
	CHECK_INT("the same", 2, writer.owner_count);
	CHECK_INT("newest", true,
		  emergency_quarantine(&writer, "a")->id >
			  emergency_quarantine(&writer, "uid-7@main")->id);
	emergency_begin(&writer, "a", "INC-4", false);
	CHECK_INT("once to be stopped", 1, emergency_quarantine(&writer, "a")->kill);
	emergency_end(&writer, "a");
	emergency_end(&writer, "nobody");
	CHECK_INT("not published", true, emergency_quarantine(&view, "a") != NULL);
	emergency_publish(t, &writer);
	emergency_look(t, &view);
	CHECK_INT("ended", true, emergency_quarantine(&view, "a") == NULL);
	CHECK_INT("the other", true, emergency_quarantine(&view, "uid-7@main") != NULL);
	emergency_destroy(t);
}

/* The process that writes it may have been taken over. */
static void readers_believe_no_lengths(void **state)
{
	static struct emergency_view view, writer;
	struct err err = {0};
	struct emergency *t = emergency_create(&err);

	(void)state;
	memset(&writer, 'x', sizeof(writer));
	emergency_publish(t, &writer);
	emergency_look(t, &view);
	CHECK_INT("owners", EMERGENCY_OWNERS, view.owner_count);
	CHECK_INT("modes", EMERGENCY_MODES, view.mode_count);
	CHECK_INT("owner", EMERGENCY_OWNER_MAX, strlen(view.owners[EMERGENCY_OWNERS - 1].owner));
	CHECK_INT("ticket", EMERGENCY_TICKET_MAX, strlen(view.owners[EMERGENCY_OWNERS - 1].ticket));
	CHECK_INT("profile", EMERGENCY_PROFILE_MAX,
		  strlen(view.modes[EMERGENCY_MODES - 1].profile));
	CHECK_INT("its ticket", EMERGENCY_TICKET_MAX,
		  strlen(view.modes[EMERGENCY_MODES - 1].ticket));
	emergency_destroy(t);
}

static void it_is_bounded(void **state)
{
	struct emergency_view view = {0};
	char owner[EMERGENCY_OWNER_MAX + 2];

	(void)state;
	memset(owner, 'o', sizeof(owner));
	owner[EMERGENCY_OWNER_MAX + 1] = '\0';
	CHECK_INT("too long", true, emergency_begin(&view, owner, "T", false) == NULL);
	owner[EMERGENCY_OWNER_MAX] = '\0';
	CHECK_INT("longest", true, emergency_begin(&view, owner, "T", false) != NULL);
	CHECK_INT("no owner", true, emergency_begin(&view, "", "T", false) == NULL);
	CHECK_INT("no ticket", true, emergency_begin(&view, "a", "", false) == NULL);
	CHECK_INT("odd ticket", true, emergency_begin(&view, "a", "a\"b", false) == NULL);
	for (int i = 1; i < EMERGENCY_OWNERS; i++) {
		snprintf(owner, sizeof(owner), "o%d", i);
		CHECK_INT(owner, true, emergency_begin(&view, owner, "T", false) != NULL);
	}
	CHECK_INT("one more", true, emergency_begin(&view, "more", "T", false) == NULL);
	CHECK_INT("one of them", true, emergency_begin(&view, "o1", "T2", false) != NULL);
}

static void modes_are_bounded_and_end(void **state)
{
	static struct emergency_view view;
	struct emergency_mode *m;
	char name[EMERGENCY_PROFILE_MAX + 2];

	(void)state;
	CHECK_INT("none", true, emergency_mode(&view, "ci") == NULL);
	CHECK_INT("no time", true, emergency_mode_begin(&view, "ci", "T", 0) == NULL);
	CHECK_INT("too long", true,
		  emergency_mode_begin(&view, "ci", "T", EMERGENCY_MODE_MAX_S + 1) == NULL);
	CHECK_INT("no ticket", true, emergency_mode_begin(&view, "ci", "", 60) == NULL);
	CHECK_INT("odd ticket", true, emergency_mode_begin(&view, "ci", "a\"b", 60) == NULL);
	CHECK_INT("no profile", true, emergency_mode_begin(&view, "", "T", 60) == NULL);
	memset(name, 'p', sizeof(name));
	name[EMERGENCY_PROFILE_MAX + 1] = '\0';
	CHECK_INT("long name", true, emergency_mode_begin(&view, name, "T", 60) == NULL);
	CHECK_INT("nothing was taken", 0, view.mode_count);
	m = emergency_mode_begin(&view, "ci", "T", EMERGENCY_MODE_MAX_S);
	CHECK_INT("longest", EMERGENCY_MODE_MAX_S, m->until - m->since);
	CHECK_STR("ticket", "T", emergency_mode(&view, "ci")->ticket);
	CHECK_INT("part of a name", true, emergency_mode(&view, "c") == NULL);
	m->until = m->since; /* the wall clock says that it is over */
	CHECK_INT("over", true, emergency_mode(&view, "ci") == NULL);
	m = emergency_mode_begin(&view, "ci", "T2", 60);
	CHECK_INT("set anew", 1, view.mode_count);
	CHECK_INT("holds", true, emergency_mode_holds(m));
	m->ends_ms = 1; /* ... and so does the other clock */
	CHECK_INT("over", false, emergency_mode_holds(m));
	m = emergency_mode_begin(&view, "ci", "T2", 60);
	m->since += 3600; /* the host's clock was set back */
	CHECK_INT("not prolonged", false, emergency_mode_holds(m));
	for (int i = 1; i < EMERGENCY_MODES; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		CHECK_INT(name, true, emergency_mode_begin(&view, name, "T", 60) != NULL);
	}
	CHECK_INT("one more", true, emergency_mode_begin(&view, "more", "T", 60) == NULL);
	emergency_mode_end(&view, "ci");
	emergency_mode_end(&view, "nobody");
	CHECK_INT("ended", EMERGENCY_MODES - 1, view.mode_count);
	CHECK_INT("another", true, emergency_mode(&view, "p1") != NULL);
	CHECK_INT("room", true, emergency_mode_begin(&view, "more", "T", 60) != NULL);
}

/* A process that gave it up dies when it writes, and cannot get it back. */
static void who_gave_it_up_cannot_write(void **state)
{
	struct err err = {0};
	struct emergency *t = emergency_create(&err);
	struct emergency_view view = {0}, writer = {0};
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		emergency_only_read(t);
		emergency_publish(t, &writer);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK_INT("it did not write", false, WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_INT("nothing new", false, emergency_look(t, &view));
	emergency_publish(t, &writer);
	CHECK_INT("here it is written", true, emergency_look(t, &view));
	emergency_destroy(t);
}

/* What of the table is mapped here and cannot be written, as the kernel shows it. */
static void *read_mapping(size_t *ret_len)
{
	unsigned long from = 0, to = 0;
	char line[512], how[8];
	FILE *maps = fopen("/proc/self/maps", "re");
	void *found = NULL;

	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "memfd:sallyport-emergency") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, how) == 3 && strcmp(how, "r--s") == 0)
			found = (void *)from;
	fclose(maps);
	*ret_len = to - from;
	return found;
}

/* Neither by making what is mapped writable, nor by mapping it once more. */
static void the_seal_lets_nobody_write_again(void **state)
{
	struct err err = {0};
	struct emergency *t = emergency_create(&err);
	char path[64];
	size_t len;
	void *at;
	int fd;

	(void)state;
	emergency_only_read(t);
	at = read_mapping(&len);
	CHECK_INT("it is mapped", true, at != NULL);
	CHECK_INT("made writable", -1, mprotect(at, len, PROT_READ | PROT_WRITE));
	CHECK_INT("forbidden", EACCES, errno);
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)at,
		 (unsigned long)at + len);
	fd = open(path, O_RDWR | O_CLOEXEC); /* root alone gets so far */
	if (fd >= 0) {
		CHECK_INT("mapped anew", true,
			  mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
		CHECK_INT("written", -1, (int)pwrite(fd, "x", 1, 0));
		close(fd);
	}
	emergency_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_before_it_is_published),
		cmocka_unit_test(readers_see_what_is_in_force),
		cmocka_unit_test(readers_believe_no_lengths),
		cmocka_unit_test(it_is_bounded),
		cmocka_unit_test(modes_are_bounded_and_end),
		cmocka_unit_test(who_gave_it_up_cannot_write),
		cmocka_unit_test(the_seal_lets_nobody_write_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
