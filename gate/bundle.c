#include "gate/bundle.h"

#include "gate/base/auto.h"

#include "proxy/behalf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "sallyport-bundle 1\n";

void bundle_begin(struct buf *out)
{
	buf_puts(out, magic);
}

void bundle_put(struct buf *out, struct span name, struct span text)
{
	uint32_t name_len = (uint32_t)name.len;
	uint64_t text_len = text.len;

	buf_put(out, &name_len, sizeof(name_len));
	buf_put(out, &text_len, sizeof(text_len));
	buf_put(out, name.at, name.len);
	buf_put(out, text.at, text.len);
}

bool bundle_start(struct span *rest)
{
	if (!span_starts(*rest, magic))
		return false;
	*rest = span_skip(*rest, sizeof(magic) - 1);
	return true;
}

static bool take(struct span *rest, uint64_t len, struct span *ret)
{
	if (len > rest->len)
		return false;
	*ret = (struct span){rest->at, (size_t)len};
	*rest = span_skip(*rest, (size_t)len);
	return true;
}

bool bundle_next(struct span *rest, struct span *ret_name, struct span *ret_text)
{
	struct span piece;
	uint32_t name_len;
	uint64_t text_len;

	if (!take(rest, sizeof(name_len), &piece))
		return false;
	memcpy(&name_len, piece.at, sizeof(name_len));
	if (!take(rest, sizeof(text_len), &piece))
		return false;
	memcpy(&text_len, piece.at, sizeof(text_len));
	return take(rest, name_len, ret_name) && take(rest, text_len, ret_text);
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int map_sealed(int fd, struct bundle *ret, struct err *err)
{
	struct hash hash;
	struct stat st;
	void *at;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at the configuration bundle");
	if (st.st_size <= 0 || (size_t)st.st_size > BUNDLE_MAX)
		return err_set(err, ERR_LIMIT,
			       "the configuration bundle has %lld bytes, not 1 to %zu",
			       (long long)st.st_size, BUNDLE_MAX);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_sys(err, "map the configuration bundle");
	*ret = (struct bundle){.fd = fd, .text = {at, (size_t)st.st_size}};
	hash = hash_of(ret->text);
	hash_hex(&hash, ret->generation);
	return 0;
}

int bundle_seal(int fd, struct bundle *ret, struct err *err)
{
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(err, "seal the configuration bundle");
	return map_sealed(fd, ret, err);
}

int bundle_take(int fd, struct bundle *ret, struct err *err)
{
	auto_fd int taken = fd;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS)
		return err_set(err, ERR_SYSTEM, "the configuration bundle is not sealed");
	if (map_sealed(fd, ret, err) < 0)
		return -1;
	take_fd(taken);
	return 0;
}

void bundle_unmap(struct bundle *b)
{
	if (b->text.len)
		munmap((void *)(uintptr_t)b->text.at, b->text.len);
	b->text = (struct span){"", 0};
}

void bundle_close(struct bundle *b)
{
	if (b->fd < 0)
		return;
	bundle_unmap(b);
	close(b->fd);
	*b = (struct bundle){.fd = -1};
}

static int damaged(struct err *err)
{
	return err_set(err, ERR_CONFIG, "the configuration bundle is damaged");
}

static bool is_file(struct span name)
{
	return name.len && name.at[0] == '/';
}

/* A file that is named twice is one piece. */
static void keep_file(struct config *c, struct span name, struct span text)
{
	for (size_t i = 0; i < c->file_count; i++)
		if (span_is(name, c->files[i]->path))
			c->files[i]->text = text;
}

static int parse_names(struct span text, struct arena *a, struct config *ret, struct err *err)
{
	size_t lines = 1, count = 0;
	const char **names;
	struct span name;

	for (size_t i = 0; i < text.len; i++)
		lines += text.at[i] == '\n';
	names = arena_take(a, (lines + 1) * sizeof(*names));
	if (!names)
		return err_set(err, ERR_LIMIT, "%s: too large", ret->path);
	while (text.len && span_cut(&text, '\n', &name))
		names[count++] = arena_strndup(a, name.at, name.len);
	names[count] = NULL;
	ret->profile_names = names;
	return 0;
}

static int parse_pieces(struct span rest, struct arena *a, struct config *ret, struct err *err)
{
	struct rule_source *rules = arena_take(a, (BUNDLE_SOURCES_MAX + 1) * sizeof(*rules));
	size_t count = 0;

	if (!rules)
		return err_set(err, ERR_LIMIT, "%s: too large", ret->path);
	while (rest.len) {
		struct span name, text;

		if (!bundle_next(&rest, &name, &text))
			return damaged(err);
		if (is_file(name)) {
			keep_file(ret, name, text);
			continue;
		}
		if (!name.len) {
			if (parse_names(text, a, ret, err) < 0)
				return -1;
			continue;
		}
		if (span_is(name, BUNDLE_ORIGIN)) {
			ret->proxy.rules_origin = arena_strndup(a, text.at, text.len);
			continue;
		}
		if (count == BUNDLE_SOURCES_MAX)
			return damaged(err);
		rules[count].name = arena_strndup(a, name.at, name.len);
		rules[count++].text = text;
	}
	if (config_has_sandboxes(ret))
		rules[count++] = (struct rule_source){BEHALF_PROFILE, span_of(BEHALF_RULES)};
	ret->proxy.rules = rules;
	ret->proxy.rule_count = count;
	return 0;
}

int bundle_config(const struct bundle *b, struct arena *a, struct config *ret, struct err *err)
{
	struct span rest = b->text, name, text;
	enum jv_fault fault;
	struct jv entries;
	const char *path;
	char build[256];

	if (!bundle_start(&rest) || !bundle_next(&rest, &name, &text) || name.len >= 4096)
		return damaged(err);
	path = arena_strndup(a, name.at, name.len);
	if (!path || jv_parse(a, text, &entries, &fault, err) < 0)
		return damaged(err);
	if (config_build(&entries, path, a, ret, err) < 0 || parse_pieces(rest, a, ret, err) < 0)
		return -1;
	ret->entries = arena_take(a, sizeof(*ret->entries));
	if (ret->entries)
		*ret->entries = entries;
	ret->proxy.generation = b->generation;
	/* So that gate_start says under which rules everything behind it was decided. */
	snprintf(build, sizeof(build), "%s, rules %s", ret->auditor.build, b->generation);
	ret->auditor.build = arena_strndup(a, build, strlen(build));
	return arena_spent(a) ? err_set(err, ERR_LIMIT, "%s: too large", path) : 0;
}
