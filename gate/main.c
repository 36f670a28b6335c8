#include "gate/command.h"

#include "gate/base/jv.h"
#include "gate/keeper/box.h"
#include "gate/passed.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What is opened later must not become stdin, stdout or stderr; and no other file is inherited. */
static void hold_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close_range(passed_behind(), ~0U, 0); /* what was left open is not ours */
}

int main(int argc, char **argv)
{
	const struct command *c;
	struct err err = {0};
	struct args args;
	int words = 0;

	if (argc >= 2 && strcmp(argv[1], BOX_LAUNCH_VERB) == 0)
		return box_launcher_main(argc - 2, argv + 2);
	hold_standard_descriptors();
	jv_init();
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		run_help(&(struct args){0});
		return argc < 2 ? EXIT_CANNOT : EXIT_YES;
	}
	if (strcmp(argv[1], "--version") == 0)
		return run_version(&(struct args){0});
	c = command_find(argc - 1, argv + 1, &words, &err);
	if (!c || command_parse(c, argc - 1 - words, argv + 1 + words, &args, &err) < 0)
		return command_failed(&err);
	if (args.help) {
		command_help(c, stdout);
		return EXIT_YES;
	}
	return command_run(c, &args);
}
