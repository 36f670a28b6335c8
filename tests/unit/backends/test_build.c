/*
 * The archive and the Dockerfile of a build, as bytes: what is refused, and
 * that what is written has one form, however it came.
 */
#include "tests/unit/check.h"

#include "backends/docker/dockerfile_priv.h"
#include "backends/docker/gunzip_priv.h"
#include "backends/docker/tar_priv.h"
#include "backends/docker/tar_write_priv.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* --- archives --- */

/* An entry as a client may write it; what is 0 is as it should be. */
struct raw {
	char type;
	const char *name, *link, *content;
	const char *magic; /* "posix", "gnu" or anything */
	const char *prefix;
	bool bad_sum;
	const char *size; /* instead of the content's */
};

static void put_raw(struct buf *out, const struct raw *r)
{
	unsigned char head[TAR_BLOCK] = {0};
	size_t len = r->content ? strlen(r->content) : 0;
	bool gnu = r->magic && !strcmp(r->magic, "gnu");
	unsigned sum = 0;

	memcpy(head, r->name, strnlen(r->name, 100));
	memcpy(head + 100, "0000644", 8);
	snprintf((char *)head + 124, 12, "%011o", (unsigned)len);
	if (r->size)
		memcpy(head + 124, r->size, strlen(r->size) + 1);
	memcpy(head + 136, "00000000001", 12);
	memset(head + 148, ' ', 8);
	head[156] = (unsigned char)r->type;
	if (r->link)
		memcpy(head + 157, r->link, strnlen(r->link, 100));
	if (gnu)
		memcpy(head + 257, "ustar  ", 8);
	else if (!r->magic)
		memcpy(head + 257, "ustar\00000", 8);
	if (r->prefix)
		memcpy(head + 345, r->prefix, strlen(r->prefix));
	for (size_t i = 0; i < sizeof(head); i++)
		sum += head[i];
	snprintf((char *)head + 148, 8, "%06o", (sum + r->bad_sum) & 0777777);
	buf_put(out, head, sizeof(head));
	buf_put(out, r->content ? r->content : "", len);
	tar_write_padding(out, len);
}

#define ENTRIES_MAX 4

struct archive {
	const char *label;
	struct raw entries[ENTRIES_MAX];
	const char *behind; /* the end; NULL: two empty blocks */
	const char *why;    /* begin of tar_why(); NULL: it passes */
};

#define DF                                                                                         \
	{                                                                                          \
		'0', "Dockerfile", NULL, "FROM x\n", NULL, NULL, false, NULL                       \
	}

static const struct archive archives[] = {
	{"plain", {DF}, NULL, NULL},
	{"with ./",
	 {{.type = '5', .name = "./"},
	  {.type = '0', .name = "./Dockerfile", .content = "FROM x\n"}},
	 NULL,
	 NULL},
	{"old type", {{.type = '\0', .name = "Dockerfile", .content = "FROM x\n"}}, NULL, NULL},
	{"gnu",
	 {{.type = '0', .name = "Dockerfile", .content = "FROM x\n", .magic = "gnu"}},
	 NULL,
	 NULL},
	{"a long name of gnu",
	 {{.type = 'L', .name = "././@LongLink", .content = "Dockerfile"},
	  {.type = '0', .name = "cut", .content = "FROM x\n", .magic = "gnu"}},
	 NULL,
	 NULL},
	{"a pax name",
	 {{.type = 'x', .name = "p", .content = "19 path=Dockerfile\n"},
	  {.type = '0', .name = "cut", .content = "FROM x\n"}},
	 NULL,
	 NULL},
	{"a comment for all",
	 {{.type = 'g', .name = "p", .content = "14 comment=abc\n"}, DF},
	 NULL,
	 "a pax header is malformed"},
	{"a comment for all, right",
	 {{.type = 'g', .name = "p", .content = "15 comment=abc\n"}, DF},
	 NULL,
	 NULL},
	{"links elsewhere",
	 {{.type = '2', .name = "a", .link = "/etc"}, {.type = '1', .name = "b", .link = "a"}, DF},
	 NULL,
	 NULL},
	{"folders",
	 {{.type = '5', .name = "a/"}, {.type = '0', .name = "a/b", .content = "x"}, DF},
	 NULL,
	 NULL},
	{"another file called dockerfile",
	 {{.type = '0', .name = "dockerfile", .content = "x"}, DF},
	 NULL,
	 NULL},

	{"twice", {DF, DF}, NULL, "the Dockerfile comes twice"},
	{"twice, the second otherwise named",
	 {DF, {.type = '0', .name = "./x/.././Dockerfile", .content = "y"}},
	 NULL,
	 "an entry's name"},
	{"twice, with ./",
	 {DF, {.type = '0', .name = ".//Dockerfile", .content = "y"}},
	 NULL,
	 "the Dockerfile comes twice"},
	{"twice, by a pax name",
	 {DF,
	  {.type = 'x', .name = "p", .content = "19 path=Dockerfile\n"},
	  {.type = '0', .name = "z"}},
	 NULL,
	 "the Dockerfile comes twice"},
	{"twice, by a prefix",
	 {{.type = '0', .name = "f", .prefix = "Dockerfile"}, DF},
	 NULL,
	 "an entry lies below the Dockerfile"},
	{"a link in its place",
	 {DF, {.type = '2', .name = "Dockerfile", .link = "x"}},
	 NULL,
	 "the Dockerfile comes twice"},
	{"a link in its place, before",
	 {{.type = '2', .name = "Dockerfile", .link = "x"}},
	 NULL,
	 "the Dockerfile is not a plain file"},
	{"a hard link in its place",
	 {{.type = '1', .name = "Dockerfile", .link = "x"}},
	 NULL,
	 "the Dockerfile is not a plain file"},
	{"a folder in its place",
	 {{.type = '5', .name = "Dockerfile/"}},
	 NULL,
	 "the Dockerfile is not a plain file"},
	{"through a link",
	 {DF,
	  {.type = '2', .name = "a", .link = "."},
	  {.type = '0', .name = "a/Dockerfile", .content = "y"}},
	 NULL,
	 "an entry lies below a link"},
	{"through a link, before",
	 {{.type = '2', .name = "a", .link = "."},
	  {.type = '0', .name = "a/b/c", .content = "y"},
	  DF},
	 NULL,
	 "an entry lies below a link"},
	{"through a hard link to a link",
	 {{.type = '2', .name = "a", .link = "."},
	  {.type = '1', .name = "b", .link = "a"},
	  {.type = '0', .name = "b/Dockerfile", .content = "y"}},
	 NULL,
	 "an entry lies below a link"},
	{"a hard link to it",
	 {DF, {.type = '1', .name = "a", .link = "./Dockerfile"}},
	 NULL,
	 "a hard link leads to the Dockerfile"},
	{"a hard link to it, through a link",
	 {DF,
	  {.type = '2', .name = "a", .link = "."},
	  {.type = '1', .name = "b", .link = "a/Dockerfile"}},
	 NULL,
	 "an entry lies below a link"},
	{"below it",
	 {DF, {.type = '0', .name = "Dockerfile/x", .content = "y"}},
	 NULL,
	 "an entry lies below the Dockerfile"},

	{"absolute",
	 {{.type = '0', .name = "/Dockerfile", .content = "x"}},
	 NULL,
	 "an entry's name"},
	{"up", {{.type = '0', .name = "../x", .content = "x"}}, NULL, "an entry's name"},
	{"a control byte",
	 {{.type = '0', .name = "a\nb", .content = "x"}},
	 NULL,
	 "an entry's name"},
	{"no name", {{.type = '0', .name = "", .content = "x"}}, NULL, "an entry has no name"},
	{"a file like a folder",
	 {{.type = '0', .name = "a/", .content = "x"}},
	 NULL,
	 "an entry that is no folder"},
	{"a hard link out",
	 {{.type = '1', .name = "a", .link = "../x"}},
	 NULL,
	 "a hard link leads out"},
	{"a link without a target", {{.type = '2', .name = "a"}}, NULL, "an entry has a target"},
	{"a device", {{.type = '3', .name = "a"}}, NULL, "an entry is no file"},
	{"a block device", {{.type = '4', .name = "a"}}, NULL, "an entry is no file"},
	{"a pipe", {{.type = '6', .name = "a"}}, NULL, "an entry is no file"},
	{"contiguous", {{.type = '7', .name = "a"}}, NULL, "an entry is no file"},
	{"sparse of gnu",
	 {{.type = 'S', .name = "a", .magic = "gnu"}},
	 NULL,
	 "an entry is no file"},
	{"sparse of pax",
	 {{.type = 'x', .name = "p", .content = "22 GNU.sparse.major=1\n"}, DF},
	 NULL,
	 "a pax header says what is not known"},
	{"another character set",
	 {{.type = 'x', .name = "p", .content = "21 hdrcharset=BINARY\n"}, DF},
	 NULL,
	 "a pax header says what is not known"},
	{"a pax name twice",
	 {{.type = 'x', .name = "p", .content = "9 path=a\n9 path=b\n"}, DF},
	 NULL,
	 "a pax header says what is not known, or says it twice"},
	{"a pax length too short",
	 {{.type = 'x', .name = "p", .content = "4 path=Dockerfile\n"}, DF},
	 NULL,
	 "a pax header is malformed"},
	{"a pax length too long",
	 {{.type = 'x', .name = "p", .content = "99 path=Dockerfile\n"}, DF},
	 NULL,
	 "a pax header is malformed"},
	{"a name for all",
	 {{.type = 'g', .name = "p", .content = "19 path=Dockerfile\n"}, DF},
	 NULL,
	 "pax headers for all entries"},
	{"two extended heads",
	 {{.type = 'L', .name = "p", .content = "a"},
	  {.type = 'x', .name = "p", .content = "9 path=b\n"},
	  DF},
	 NULL,
	 "an entry has two extended headers"},
	{"a head of nothing",
	 {{.type = 'L', .name = "p", .content = "a"}},
	 NULL,
	 "an extended header belongs to no entry"},
	{"a folder with content",
	 {{.type = '5', .name = "a/", .content = "x"}},
	 NULL,
	 "an entry that is no file has content"},
	{"a wrong sum", {{.type = '0', .name = "a", .bad_sum = true}}, NULL, "this is no tar"},
	{"no magic", {{.type = '0', .name = "a", .magic = "v7"}}, NULL, "this is no tar"},
	{"a size in letters", {{.type = '0', .name = "a", .size = "abc"}}, NULL, "an entry's size"},
	{"a size above all",
	 {{.type = '0', .name = "a", .size = "\xff\xff\xff\xff"}},
	 NULL,
	 "an entry's size"},
	{"bytes behind the end", {DF}, "x", "something stands behind"},
	{"an archive behind the end", {DF}, "archive", "something stands behind"},
	{"no end", {DF}, "", "the archive ends early"},
	{"half an end", {DF}, "half", "the archive ends early"},
	{"text",
	 {{.type = '0', .name = "a", .magic = "x", .bad_sum = true}},
	 NULL,
	 "this is no tar"},
};

static void put_archive(struct buf *in, const struct archive *a)
{
	static const char zeros[TAR_BLOCK];

	for (size_t i = 0; i < ENTRIES_MAX && a->entries[i].name; i++)
		put_raw(in, &a->entries[i]);
	if (!a->behind || !strcmp(a->behind, "x") || !strcmp(a->behind, "archive"))
		tar_write_end(in);
	if (a->behind && !strcmp(a->behind, "half"))
		buf_put(in, zeros, sizeof(zeros));
	if (a->behind && !strcmp(a->behind, "x"))
		buf_puts(in, "x");
	if (a->behind && !strcmp(a->behind, "archive"))
		put_raw(in, &(struct raw)DF);
}

/* Through the reader, in pieces of that size; 0 if it passes. */
static int through(struct arena *a, struct span in, size_t piece, struct buf *out, struct tar **ret)
{
	struct tar *t = tar_open(a, "Dockerfile");

	*ret = t;
	while (in.len) {
		struct span one = {in.at, in.len < piece ? in.len : piece};

		in = span_skip(in, one.len);
		if (tar_feed(t, one, out) < 0)
			return -1;
	}
	return tar_end(t, out);
}

static void archives_pass_or_do_not(void **state)
{
	static const size_t pieces[] = {1, 511, 100000};

	(void)state;
	for (size_t i = 0; i < sizeof(archives) / sizeof(*archives); i++) {
		for (size_t k = 0; k < sizeof(pieces) / sizeof(*pieces); k++) {
			struct arena *a = arena_create(1 << 20);
			struct buf in, out;
			struct tar *t;
			int got;

			buf_init(&in, 1 << 20);
			buf_init(&out, 1 << 20);
			put_archive(&in, &archives[i]);
			got = through(a, buf_span(&in), pieces[k], &out, &t);
			if (archives[i].why &&
			    strncmp(tar_why(t), archives[i].why, strlen(archives[i].why)) != 0)
				fail_msg("%s: %s", archives[i].label, tar_why(t));
			if ((got < 0) != (archives[i].why != NULL))
				fail_msg("%s: %d %s", archives[i].label, got, tar_why(t));
			if (got == 0 && !tar_found(t))
				fail_msg("%s: the file was not found", archives[i].label);
			if (got == 0)
				assert_memory_equal(tar_wanted(t).at, "FROM x\n", 7);
			buf_fini(&in);
			buf_fini(&out);
			arena_destroy(a);
		}
	}
}

/* What is written is read by the same reader, and comes out as it went in. */
static void what_is_written_has_one_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(archives) / sizeof(*archives); i++) {
		struct arena *a = arena_create(1 << 20);
		struct buf in, out, again;
		struct tar *t;

		buf_init(&in, 1 << 20);
		buf_init(&out, 1 << 20);
		buf_init(&again, 1 << 20);
		put_archive(&in, &archives[i]);
		if (through(a, buf_span(&in), 7, &out, &t) == 0) {
			CHECK_INT(archives[i].label, 0,
				  through(a, buf_span(&out), 100000, &again, &t));
			CHECK_INT(archives[i].label, 1, span_eq(buf_span(&out), buf_span(&again)));
			CHECK_INT(archives[i].label, 0,
				  memcmp(buf_span(&out).at, "PaxHeaders/entry", 17));
		}
		buf_fini(&in);
		buf_fini(&out);
		buf_fini(&again);
		arena_destroy(a);
	}
}

/* The first bytes are what an engine tells packed archives by. */
static void a_name_is_no_magic(void **state)
{
	struct arena *a = arena_create(1 << 20);
	struct buf in, out;
	struct tar *t;

	(void)state;
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	put_raw(&in, &(struct raw){.type = '0', .name = "BZh91AY", .content = "x"});
	put_raw(&in, &(struct raw)DF);
	tar_write_end(&in);
	CHECK_INT("passes", 0, through(a, buf_span(&in), 4096, &out, &t));
	CHECK_INT("begins with ours", 0, memcmp(buf_span(&out).at, "PaxHeaders", 10));
	buf_fini(&in);
	buf_fini(&out);
	arena_destroy(a);
}

static void long_names_and_many_links(void **state)
{
	struct arena *a = arena_create(8 << 20);
	struct tar *t = tar_open(a, "Dockerfile");
	struct buf in, out;
	char name[300];

	(void)state;
	buf_init(&in, 32 << 20);
	buf_init(&out, 32 << 20);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%0150d/l%d", 0, i);
		tar_write_entry(&in,
				&(struct tar_entry){
					.type = '2', .name = span_of(name), .link = span_of("x")},
				false);
	}
	put_raw(&in, &(struct raw)DF);
	CHECK_INT("pass", 0, tar_feed(t, buf_span(&in), &out));
	CHECK_INT("found", 1, tar_found(t));
	buf_clear(&in);
	snprintf(name, sizeof(name), "%0150d/l17/x", 0);
	tar_write_entry(&in, &(struct tar_entry){.type = '0', .name = span_of(name)}, false);
	CHECK_INT("refused", -1, tar_feed(t, buf_span(&in), &out));
	assert_string_equal(tar_why(t), "an entry lies below a link");
	buf_fini(&in);
	buf_fini(&out);
	arena_destroy(a);
}

static void a_large_dockerfile_is_refused(void **state)
{
	struct arena *a = arena_create(8 << 20);
	struct buf in, out;
	struct tar *t = tar_open(a, "Dockerfile");
	struct tar_entry e = {
		.type = '0', .name = span_of("Dockerfile"), .size = TAR_WANTED_MAX + 1};

	(void)state;
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	tar_write_entry(&in, &e, false);
	CHECK_INT("refused", -1, tar_feed(t, buf_span(&in), &out));
	CHECK_INT("as large", TAR_LARGE, tar_fault(t));
	buf_fini(&in);
	buf_fini(&out);
	arena_destroy(a);
}

/* --- gzip --- */

static size_t packed(const char *text, size_t len, unsigned char *to, size_t room)
{
	z_stream z = {0};

	deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
	z.next_in = (unsigned char *)(uintptr_t)text;
	z.avail_in = (unsigned)len;
	z.next_out = to;
	z.avail_out = (unsigned)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return room - z.avail_out;
}

static int unpacked(struct span in, size_t piece, struct buf *out, bool *ret_over)
{
	struct arena *a = arena_create(1 << 20);
	struct gunzip *g = gunzip_open(a);
	int bad = 0;

	while (in.len && !bad) {
		struct span one = {in.at, in.len < piece ? in.len : piece}, got;

		in = span_skip(in, one.len);
		do {
			bad = gunzip_some(g, &one, &got);
			buf_put(out, got.at, got.len);
		} while (!bad && (one.len || got.len == GUNZIP_PIECE));
	}
	*ret_over = gunzip_over(g);
	arena_destroy(a);
	return bad;
}

static void gzip_is_unpacked_strictly(void **state)
{
	static char text[300000];
	static unsigned char small[400000];
	size_t len;
	struct buf out;
	bool over;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * i >> 7);
	len = packed(text, sizeof(text), small, sizeof(small));
	for (size_t piece = 1; piece < 100000; piece *= 17) {
		buf_init(&out, 1 << 20);
		CHECK_INT("whole", 0,
			  unpacked((struct span){(char *)small, len}, piece, &out, &over));
		CHECK_INT("over", 1, over);
		CHECK_INT("same", 1, span_eq(buf_span(&out), (struct span){text, sizeof(text)}));
		buf_fini(&out);
	}
	buf_init(&out, 1 << 20);
	CHECK_INT("cut", 0, unpacked((struct span){(char *)small, len - 1}, 4096, &out, &over));
	CHECK_INT("not over", 0, over);
	small[len] = 'x';
	CHECK_INT("behind", -1, unpacked((struct span){(char *)small, len + 1}, 1, &out, &over));
	small[len - 8] ^= 1;
	CHECK_INT("sum", -1, unpacked((struct span){(char *)small, len}, 4096, &out, &over));
	buf_fini(&out);
}

/* --- Dockerfiles --- */

static void dockerfiles_are_read_as_the_engine_does(void **state)
{
	static const struct {
		const char *label, *text, *want; /* NAME|args, separated by ';', or "!why" */
	} rows[] = {
		{"one", "FROM a\n", "FROM|a"},
		{"without a line's end", "FROM a", "FROM|a"},
		{"lower case, tabs, CRLF", "  from\ta \r\n", "FROM|a"},
		{"a byte order mark",
		 "\xef\xbb\xbf"
		 "FROM a\n",
		 "FROM|a"},
		{"comments", "# a\nFROM a\n  # b\nRUN c\n", "FROM|a;RUN|c"},
		{"continued", "FROM a\nRUN b \\\n  c \\  \n d\n", "FROM|a;RUN|b   c  d"},
		{"continued at the end", "FROM a\nRUN b \\\n", "FROM|a;RUN|b"},
		{"a comment within", "FROM a\nRUN b \\\n# c\n  && d\n", "FROM|a;RUN|b   && d"},
		{"an indented comment within", "FROM a\nRUN b \\\n  # c\n  && d\n",
		 "FROM|a;RUN|b   && d"},
		{"an empty line within", "FROM a\nRUN b \\\n\n  && d\n", "FROM|a;RUN|b   && d"},
		{"a name in two lines", "FR\\\nOM a\n", "FROM|a"},
		{"another escape", "# escape=`\nFROM a\nRUN b `\n c\\\n", "FROM|a;RUN|b  c\\"},
		{"the same escape", "# escape=\\\nFROM a\n", "FROM|a"},
		{"an unknown directive", "# check=skip=all\nFROM a\n", "FROM|a"},
		{"an escape that comes late and changes nothing", "# x\n# escape=\\\nFROM a\n",
		 "FROM|a"},
		{"an escape behind the first instruction", "FROM a\n# escape=`\nRUN b\n",
		 "FROM|a;RUN|b"},

		{"syntax", "# syntax=docker/dockerfile:1\nFROM a\n", "!# syntax="},
		{"syntax, otherwise", "#SYNTAX = x\nFROM a\n", "!# syntax="},
		{"syntax, later", "# a\n#syntax=x\nFROM a\n", "!# syntax="},
		{"an escape that comes late", "# x\n# escape=`\nFROM a\n", "!# escape="},
		{"an escape behind an empty line", "\n# escape=`\nFROM a\n", "!# escape="},
		{"two escapes", "# escape=`\n# escape=\\\nFROM a\n", "!# escape="},
		{"another letter", "# escape=x\nFROM a\n", "!# escape="},
		{"an instruction behind an empty line within", "FROM a\nRUN b \\\n\nFROM c\n",
		 "!versions"},
		{"an instruction behind a comment within",
		 "FROM a\nRUN b \\\n  # c\nCOPY --from=x a b\n", "!versions"},
		{"an instruction in two lines behind two escapes",
		 "FROM a\nRUN b \\\\\nUS\\\nER 0\n", "!versions"},
		{"a name and an escape behind two escapes", "FROM a\nRUN b \\\\\nUSER\\\n 0\n",
		 "!versions"},
		{"nothing but an escape behind two escapes", "FROM a\nRUN b \\\\\n\\\nUSER 0\n",
		 "!versions"},
		{"an escape behind a form feed", "#\fescape=`\nFROM a\nRUN b \\\nUSER 0\n",
		 "!control bytes"},
		{"an instruction behind two escapes", "FROM a\nRUN b \\\\\nFROM c\n", "!versions"},
		{"an unknown instruction", "FROM a\nINCLUDE b\n", "!this is no instruction"},
		{"no instruction", "\n\n# a\n", "!there is no instruction"},
		{"nothing said", "FROM\n", "!the instruction says nothing"},
		{"here", "FROM a\nRUN <<E\nb\nE\n", "!here-documents"},
		{"here, with a number", "FROM a\nRUN cat 3<<-\"E\"\n", "!here-documents"},
		{"here, in COPY", "FROM a\nCOPY <<E /a\n", "!here-documents"},
		{"a here-string is none", "FROM a\nRUN cat <<< x\n", "FROM|a;RUN|cat <<< x"},
		{"a space that is none", "FROM a\nCOPY \xc2\xa0--from=b c d\n", "!spaces"},
		{"a space in front",
		 "FROM a\n\xc2\xa0"
		 "FROM b\n",
		 "!spaces"},
		{"a control byte", "FROM a\nRUN b\vc\n", "!control bytes"},
		{"a carriage return within", "FROM a\rFROM b\n", "!control bytes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 20);
		struct dockerfile f;
		char got[512] = "";
		size_t n = 0;

		dockerfile_read(a, span_of(rows[i].text), &f);
		if (f.why)
			n = (size_t)snprintf(got, sizeof(got), "!%s", f.why);
		for (size_t k = 0; !f.why && k < f.count; k++)
			n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s|%.*s", k ? ";" : "",
					      f.list[k].name, SPAN_FMT(f.list[k].args));
		if (f.why ? strncmp(got, rows[i].want, strlen(rows[i].want)) != 0
			  : strcmp(got, rows[i].want) != 0)
			fail_msg("%s: %s", rows[i].label, got);
		arena_destroy(a);
	}
}

static void instructions_are_counted(void **state)
{
	struct arena *a = arena_create(8 << 20);
	struct dockerfile f;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	for (int i = 0; i < DOCKERFILE_INSTRUCTIONS_MAX; i++)
		buf_puts(&text, "FROM a\n");
	dockerfile_read(a, buf_span(&text), &f);
	CHECK_INT("count", DOCKERFILE_INSTRUCTIONS_MAX, (int)f.count);
	CHECK_INT("fine", 1, !f.why);
	buf_puts(&text, "FROM a\n");
	dockerfile_read(a, buf_span(&text), &f);
	CHECK_INT("refused", 1, f.why != NULL);
	CHECK_INT("line", DOCKERFILE_INSTRUCTIONS_MAX + 1, f.line);
	buf_fini(&text);
	arena_destroy(a);
}

/* --- copies --- */

static void copies_pass_or_do_not(void **state)
{
	static const struct {
		const char *name;
		char type;
		const char *entry, *link, *why; /* why NULL: it passes */
		unsigned mode;
		uint64_t uid;
	} rows[] = {
		{"a file", '0', "a", "", NULL, 0644, 1000},
		{"a folder", '5', "a", "", NULL, 0755, 0},
		{"a folder with setgid", '5', "a", "", NULL, 02755, 0},
		{"a sticky folder", '5', "a", "", NULL, 01777, 0},
		{"a large uid", '0', "a", "", NULL, 0644, 4294967294},
		{"setuid", '0', "a", "", "a file has the setuid", 04755, 0},
		{"setgid", '0', "a", "", "a file has the setuid", 02755, 0},
		{"a link beside", '2', "d/a", "b", NULL, 0777, 0},
		{"a link up and inside", '2', "d/e/a", "../../b", NULL, 0777, 0},
		{"a link out", '2', "d/a", "../../b", "a symbolic link leads out", 0777, 0},
		{"a link down and out", '2', "a", "b/../../c", "a symbolic link leads out", 0777,
		 0},
		{"a link to the root", '2', "a", "/etc", "a symbolic link leads out", 0777, 0},
		{"a hard link", '1', "a", "b", NULL, 0644, 0},
		{"a hard link out", '1', "a", "../b", "a hard link leads out", 0644, 0},
		{"a name that leads out", '0', "../a", "", "an entry's name is absolute", 0644, 0},
		{"an absolute name", '0', "/a", "", "an entry's name is absolute", 0644, 0},
		{"a device", '3', "a", "", "an entry is no file", 0644, 0},
		{"a block device", '4', "a", "", "an entry is no file", 0644, 0},
		{"a pipe", '6', "a", "", "an entry is no file", 0644, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct tar_entry e = {.type = rows[i].type,
					    .name = span_of(rows[i].entry),
					    .link = span_of(rows[i].link),
					    .mode = rows[i].mode,
					    .uid = rows[i].uid,
					    .gid = 7,
					    .mtime = 5};
		struct arena *a = arena_create(1 << 20);
		struct tar *t = tar_open_copy(a);
		struct buf in, out;

		buf_init(&in, 1 << 20);
		buf_init(&out, 1 << 20);
		tar_write_entry(&in, &e, true);
		tar_write_end(&in);
		CHECK_INT(rows[i].name, rows[i].why ? -1 : 0,
			  tar_feed(t, buf_span(&in), &out) < 0 ? -1 : tar_end(t, &out));
		if (rows[i].why)
			CHECK_INT(rows[i].name, 0,
				  strncmp(tar_why(t), rows[i].why, strlen(rows[i].why)));
		else /* modes, owners and targets come out as they went in */
			CHECK_INT(rows[i].name, 1,
				  buf_len(&in) == buf_len(&out) &&
					  memcmp(buf_span(&in).at, buf_span(&out).at,
						 buf_len(&in)) == 0);
		buf_fini(&in);
		buf_fini(&out);
		arena_destroy(a);
	}
}

/* The folder that is copied keeps its entry; what lies below a link does not pass. */
static void a_copied_folder_keeps_its_entry(void **state)
{
	struct arena *a = arena_create(1 << 20);
	struct tar *t = tar_open_copy(a);
	struct buf in, out;

	(void)state;
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	tar_write_entry(&in, &(struct tar_entry){.type = '5', .name = span_of("./"), .mode = 0700},
			true);
	tar_write_entry(
		&in, &(struct tar_entry){.type = '2', .name = span_of("l"), .link = span_of("d")},
		false);
	CHECK_INT("passes", 0, tar_feed(t, buf_span(&in), &out));
	CHECK_INT("as it is", 0, memcmp(buf_span(&in).at, buf_span(&out).at, buf_len(&in)));
	buf_clear(&in);
	tar_write_entry(&in, &(struct tar_entry){.type = '0', .name = span_of("l/x")}, false);
	CHECK_INT("does not", -1, tar_feed(t, buf_span(&in), &out));
	assert_string_equal(tar_why(t), "an entry lies below a link");
	buf_fini(&in);
	buf_fini(&out);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_pass_or_do_not),
		cmocka_unit_test(a_copied_folder_keeps_its_entry),
		cmocka_unit_test(archives_pass_or_do_not),
		cmocka_unit_test(what_is_written_has_one_form),
		cmocka_unit_test(a_name_is_no_magic),
		cmocka_unit_test(long_names_and_many_links),
		cmocka_unit_test(a_large_dockerfile_is_refused),
		cmocka_unit_test(gzip_is_unpacked_strictly),
		cmocka_unit_test(dockerfiles_are_read_as_the_engine_does),
		cmocka_unit_test(instructions_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
