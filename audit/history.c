#include "audit/history_priv.h"

#include "audit/line_priv.h"
#include "audit/record_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

typedef bool take_fn(void *arg, const struct line *line);

/* Hands over each line of a segment until take says no. */
static int each_line(int dir_fd, uint64_t first, take_fn *take, void *arg, struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, first, O_RDONLY, err);
	struct line_reader reader;
	struct span text;
	struct line line;

	if (fd < 0)
		return -1;
	if (!line_reader_init(&reader, fd))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	while (line_reader_next(&reader, &text) == LINE_WHOLE && line_split(text, &line) &&
	       take(arg, &line))
		;
	line_reader_fini(&reader);
	if (!reader.error)
		return 0;
	errno = reader.error;
	return err_sys(err, "read the log");
}

struct edge {
	struct tree *ret;
	uint64_t first;
	bool good;
};

static bool take_edge(void *arg, const struct line *line)
{
	struct edge *e = arg;

	e->good = line->seq == e->first &&
		  tree_edge_parse(record_peek_array(line->body, "edge"), e->first, e->ret);
	return false;
}

int history_edge(int dir_fd, uint64_t first, struct tree *ret, struct err *err)
{
	struct edge e = {.ret = ret, .first = first};

	if (first == 0) {
		*ret = (struct tree){0};
		return 0;
	}
	if (each_line(dir_fd, first, take_edge, &e, err) < 0)
		return -1;
	return e.good ? 0 : err_set(err, ERR_INPUT, "its first line has no edge of the tree");
}

static bool take_second(void *arg, const struct line *line)
{
	*(int64_t *)arg = line_second(line);
	return false;
}

int history_begun(int dir_fd, uint64_t first, int64_t *ret, struct err *err)
{
	int64_t second = -1;

	if (each_line(dir_fd, first, take_second, &second, err) < 0)
		return -1;
	if (second < 0)
		return err_set(err, ERR_INPUT, "its first line has no time");
	*ret = second;
	return 0;
}

struct adding {
	struct tiles *tiles; /* or */
	struct tree *tree;
	uint64_t until;
	int dir_fd;
};

static bool take_leaf(void *arg, const struct line *line)
{
	struct adding *a = arg;
	uint64_t size = a->tiles ? a->tiles->tree.size : a->tree->size;

	if (line->seq != size || size >= a->until)
		return false;
	if (a->tiles)
		tiles_add(a->tiles, a->dir_fd, &line->hash);
	else
		tree_add(a->tree, &line->hash, NULL);
	return true;
}

int history_add_segment(int dir_fd, uint64_t first, uint64_t until, struct tiles *tiles,
			struct err *err)
{
	struct adding a = {.tiles = tiles, .until = until, .dir_fd = dir_fd};

	return each_line(dir_fd, first, take_leaf, &a, err);
}

static bool take_key(void *arg, const struct line *line)
{
	struct record_peek peek;
	struct span key;

	if (!record_peek(line->body, &peek) ||
	    (peek.type != RECORD_LOG_OPEN && peek.type != RECORD_KEY_ROTATE))
		return true;
	key = record_peek_str(line->body, "key");
	if (key.len < NOTE_VKEY_MAX)
		snprintf(arg, NOTE_VKEY_MAX, "%.*s", SPAN_FMT(key));
	return true;
}

int history_key(int dir_fd, uint64_t first, char ret[NOTE_VKEY_MAX], struct err *err)
{
	*ret = '\0';
	return each_line(dir_fd, first, take_key, ret, err);
}

bool history_find(const struct segments *all, uint64_t seq, size_t *ret)
{
	size_t i = all->count;

	while (i > 0 && all->first[i - 1] > seq)
		i--;
	if (i == 0)
		return false;
	*ret = i - 1;
	return true;
}

int history_tree(int dir_fd, const struct segments *all, uint64_t size, struct tree *ret,
		 struct err *err)
{
	struct adding a = {.tree = ret, .until = size};
	size_t i;

	if (!history_find(all, size, &i))
		return err_set(err, ERR_INPUT, "the records before %llu are not there any more",
			       (unsigned long long)size);
	if (history_edge(dir_fd, all->first[i], ret, err) < 0 ||
	    each_line(dir_fd, all->first[i], take_leaf, &a, err) < 0)
		return -1;
	if (ret->size != size)
		return err_set(err, ERR_INPUT, "the log ends at record %llu",
			       (unsigned long long)ret->size);
	return 0;
}

struct wanted {
	uint64_t next, until;
	struct hash *ret;
};

static bool take_hash(void *arg, const struct line *line)
{
	struct wanted *w = arg;

	if (line->seq == w->next && w->next < w->until) {
		*w->ret++ = line->hash;
		w->next++;
	}
	return w->next < w->until;
}

bool history_leaves(int dir_fd, const struct segments *all, uint64_t from, uint64_t until,
		    struct hash *ret)
{
	struct wanted w = {.next = from, .until = until, .ret = ret};
	struct err ignored;
	size_t i;

	if (from >= until)
		return true;
	if (!history_find(all, from, &i))
		return false;
	for (; i < all->count && w.next < until; i++)
		if (all->first[i] < until &&
		    each_line(dir_fd, all->first[i], take_hash, &w, &ignored) < 0)
			return false;
	return w.next == until;
}
