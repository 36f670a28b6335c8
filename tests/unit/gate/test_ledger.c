/* The ledger of objects that are older than the gate: its one form, and who may write it. */
#include "gate/ledger.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "4496e74e6384ed95c59871d89a4bc2f6137f7188d417239d892c6bd2c3d4f32c"
#define CONTAINER                                                                                  \
	"{\"backend\":\"e\",\"kind\":\"container\",\"id\":\"" ID "\",\"name\":\"web\","            \
	"\"owner\":\"ci\",\"by\":\"root\",\"at\":\"2026-01-01T00:00:00Z\"}"
#define VOLUME                                                                                     \
	"{\"backend\":\"e\",\"kind\":\"volume\",\"id\":\"db\",\"name\":\"db\","                    \
	"\"created\":\"2026-01-02T03:04:05Z\",\"owner\":\"ci\"}"
#define WHOLE(objects) "{\"version\":1,\"objects\":[" objects "]}"

static struct arena *room(void)
{
	return arena_create((size_t)16 << 20);
}

static void has_one_form(void **state)
{
	static const struct {
		const char *text, *want; /* want "": fine */
	} rows[] = {
		{WHOLE(""), ""},
		{WHOLE(CONTAINER), ""},
		{WHOLE(VOLUME "," CONTAINER), ""},
		{"", ""}, /* no file */
		{"[]", "{\"version\":1,\"objects\":[...]} is expected"},
		{"{\"objects\":[]}", "is expected"},
		{"{\"version\":2,\"objects\":[]}", "is expected"},
		{"{\"version\":1,\"objects\":[],\"x\":1}", "is expected"},
		{"{\"version\":1,\"objects\":{}}", "is expected"},
		{WHOLE(CONTAINER) "{}", "end of file expected"},
		{WHOLE(CONTAINER ","), ""},
		{WHOLE("7"), "object 1: an entry has the strings"},
		{WHOLE(VOLUME ",{\"x\":\"y\"}"), "object 2: an entry has the strings"},
		{WHOLE("{\"backend\":\"e\",\"kind\":\"volume\",\"id\":7}"),
		 "an entry has the strings"},
		{WHOLE("{\"backend\":\"e\",\"kind\":\"image\",\"id\":\"x\",\"owner\":\"ci\"}"),
		 "kind is container, network or volume"},
		{WHOLE("{\"backend\":\"e\",\"kind\":\"container\",\"id\":\"4496\",\"owner\":"
		       "\"ci\"}"),
		 "have a full id"},
		{WHOLE("{\"backend\":\"e\",\"kind\":\"volume\",\"id\":\"db\",\"owner\":\"ci\"}"),
		 "the time at which they were made"},
		{WHOLE("{\"backend\":\"e\",\"kind\":\"network\",\"id\":\"" ID "\"}"),
		 "names a backend and an owner"},
		{WHOLE("{\"kind\":\"network\",\"id\":\"" ID "\",\"owner\":\"ci\"}"),
		 "names a backend and an owner"},
		{WHOLE(VOLUME "," VOLUME), "object 2: volume db stands twice"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = room();
		struct err err = {0};
		struct ledger l;
		int rc = ledger_parse(span_of(rows[i].text), a, &l, &err);
		bool syntax = strcmp(rows[i].text, WHOLE(CONTAINER ",")) == 0;

		if (syntax) {
			CHECK_INT(rows[i].text, -1, rc);
		} else if (*rows[i].want) {
			CHECK_INT(rows[i].text, -1, rc);
			CHECK_INT(rows[i].text, ERR_CONFIG, err.kind);
			if (!strstr(err.msg, rows[i].want))
				fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.msg,
					 rows[i].want);
		} else {
			CHECK_STR(rows[i].text, "", err.msg);
			CHECK_INT(rows[i].text, 0, rc);
		}
		arena_destroy(a);
	}
}

static void has_a_cap(void **state)
{
	struct ledger_entry *list = calloc(LEDGER_ENTRIES_MAX, sizeof(*list));
	struct ledger l = {list, 0};
	static char ids[LEDGER_ENTRIES_MAX + 1][12];
	struct err err = {0};

	(void)state;
	for (int i = 0; i <= LEDGER_ENTRIES_MAX; i++) {
		struct ledger_entry e = {"e", "volume", ids[i], "", "t", "ci", "", ""};

		snprintf(ids[i], sizeof(ids[i]), "v%d", i);
		if (i < LEDGER_ENTRIES_MAX)
			CHECK_INT("fits", 0, ledger_add(&l, &e, &err));
		else
			CHECK_INT("one more", -1, ledger_add(&l, &e, &err));
	}
	CHECK_INT("kind", ERR_LIMIT, err.kind);
	for (size_t i = 1; i < l.count; i++)
		CHECK_INT("in order", 1, strcmp(l.entries[i - 1].id, l.entries[i].id) < 0);
	free(list);
}

static void make_folder(char *ret)
{
	strcpy(ret, "/tmp/sp-ledger-XXXXXX");
	if (!mkdtemp(ret))
		fail_msg("no folder");
}

static void is_written_and_read_back(void **state)
{
	char folder[32], path[64];
	struct arena *a = room();
	struct err err = {0};
	struct ledger l, back;
	struct stat st;

	(void)state;
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/adopted", folder);
	CHECK_INT("absent", 0, ledger_read(path, a, &l, &err));
	CHECK_INT("absent is empty", 0, l.count);
	CHECK_INT("parse", 0, ledger_parse(span_of(WHOLE(VOLUME "," CONTAINER)), a, &l, &err));
	CHECK_INT("write", 0, ledger_write(path, &l, &err));
	CHECK_INT("write again", 0, ledger_write(path, &l, &err));
	CHECK_INT("read", 0, ledger_read(path, a, &back, &err));
	CHECK_STR("no trouble", "", err.msg);
	CHECK_INT("all", 2, back.count);
	CHECK_STR("container first", "container", back.entries[0].kind);
	CHECK_STR("by", "root", back.entries[0].by);
	CHECK_STR("created", "2026-01-02T03:04:05Z", back.entries[1].created);
	CHECK_INT("mode", 0, stat(path, &st));
	CHECK_INT("nobody else writes", 0, st.st_mode & 022);
	ledger_drop(&back, ledger_find(&back, "e", "container", ID));
	CHECK_INT("one less", 1, back.count);
	CHECK_INT("the other", 1, ledger_find(&back, "e", "volume", "db") != NULL);
	CHECK_INT("of another backend", 1, ledger_find(&back, "f", "volume", "db") == NULL);
	unlink(path);
	rmdir(folder);
	arena_destroy(a);
}

static void is_not_taken_from_just_anybody(void **state)
{
	static const struct {
		const char *label;
		mode_t file, folder;
		bool link, fine;
	} rows[] = {
		{"as it should be", 0644, 0755, false, true},
		{"private", 0600, 0700, false, true},
		{"a group writes it", 0664, 0755, false, false},
		{"all write it", 0646, 0755, false, false},
		{"a group can replace it", 0644, 0775, false, false},
		{"all can replace it", 0644, 0777, false, false},
		{"in a sticky folder nobody can", 0644, 01777, false, true},
		{"a link", 0644, 0755, true, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char folder[32], path[64], target[64];
		struct arena *a = room();
		struct err err = {0};
		struct ledger l;
		int fd;

		make_folder(folder);
		snprintf(path, sizeof(path), "%s/adopted", folder);
		snprintf(target, sizeof(target), "%s/other", folder);
		fd = open(rows[i].link ? target : path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || write(fd, WHOLE(""), strlen(WHOLE(""))) < 0 ||
		    fchmod(fd, rows[i].file) < 0 || close(fd) < 0 ||
		    chmod(folder, rows[i].folder) < 0)
			fail_msg("cannot set the file up");
		if (rows[i].link && symlink(target, path) < 0)
			fail_msg("no link");
		CHECK_INT(rows[i].label, rows[i].fine ? 0 : -1, ledger_read(path, a, &l, &err));
		if (!rows[i].fine)
			CHECK_INT(rows[i].label, ERR_CONFIG, err.kind);
		unlink(path);
		unlink(target);
		rmdir(folder);
		arena_destroy(a);
	}
}

static void goes_to_the_backends_that_it_names(void **state)
{
	struct conf_backend backends[] = {{.name = "d"}, {.name = "e"}, {.name = "f"}};
	struct config c = {.backends = backends};
	char folder[32], path[64];
	struct arena *a = room();
	struct err err = {0};
	struct ledger l;

	(void)state;
	c.proxy.backends = backends;
	c.proxy.backend_count = 3;
	CHECK_INT("no ledger", 0, ledger_load(&c, a, &err));
	make_folder(folder);
	snprintf(path, sizeof(path), "%s/adopted", folder);
	c.ledger = path;
	CHECK_INT("parse", 0, ledger_parse(span_of(WHOLE(VOLUME "," CONTAINER)), a, &l, &err));
	CHECK_INT("write", 0, ledger_write(path, &l, &err));
	CHECK_INT("load", 0, ledger_load(&c, a, &err));
	CHECK_INT("not the first's", 0, backends[0].adopted_count);
	CHECK_INT("the second's", 2, backends[1].adopted_count);
	CHECK_STR("in order", "container", backends[1].adopted[0].kind);
	CHECK_STR("in order", "db", backends[1].adopted[1].id);
	CHECK_INT("on record", 2, c.auditor.adoption_count);
	CHECK_INT("as it stands", 1, span_is(c.auditor.adoptions[0].entry, CONTAINER));
	c.proxy.backend_count = 1;
	CHECK_INT("an unknown backend", -1, ledger_load(&c, a, &err));
	CHECK_INT("is said", 1, strstr(err.msg, "no backend is called 'e'") != NULL);
	unlink(path);
	rmdir(folder);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_one_form),
		cmocka_unit_test(has_a_cap),
		cmocka_unit_test(is_written_and_read_back),
		cmocka_unit_test(is_not_taken_from_just_anybody),
		cmocka_unit_test(goes_to_the_backends_that_it_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
