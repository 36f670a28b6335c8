#include "rules/caller.h"

#include "rules/match_priv.h"

#define ID_LEN 64

static bool is_hex(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!((s.at[i] >= '0' && s.at[i] <= '9') || (s.at[i] >= 'a' && s.at[i] <= 'f')))
			return false;
	return s.len > 0;
}

static int wrong(struct err *err, const char *text)
{
	return err_set(err, ERR_CONFIG,
		       "'%.100s' names no container: write \"name:NAME\", \"image:IMAGE\", "
		       "\"label:NAME=VALUE\", \"id:\" and all 64 digits, or \"none\"",
		       text);
}

static bool read_label(struct span *rest, struct arena *a, struct caller_sign *ret)
{
	struct span name;

	if (!span_cut(rest, '=', &name) || !name.len || memchr(name.at, '*', name.len) ||
	    memchr(name.at, '?', name.len))
		return false;
	ret->label = arena_strndup(a, name.at, name.len);
	return ret->label != NULL;
}

int caller_sign_parse(const char *text, struct arena *a, struct caller_sign *ret, struct err *err)
{
	static const struct {
		const char *word;
		enum caller_sign_kind kind;
	} words[] = {
		{"id:", SIGN_ID},
		{"name:", SIGN_NAME},
		{"image:", SIGN_IMAGE},
		{"label:", SIGN_LABEL},
	};
	struct span rest = span_of(text);
	struct image_ref image;

	ret->kind = span_is(rest, "none") ? SIGN_OUTSIDE : SIGN_NOTHING;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!span_starts(rest, words[i].word))
			continue;
		ret->kind = words[i].kind;
		rest = span_skip(rest, strlen(words[i].word));
		break;
	}
	if (ret->kind == SIGN_NOTHING || !rest.len || rest.len > GLOB_MAX ||
	    (ret->kind == SIGN_ID && (rest.len != ID_LEN || !is_hex(rest))) ||
	    (ret->kind == SIGN_IMAGE && !span_starts(rest, "sha256:") &&
	     !image_parse(rest, &image)) ||
	    (ret->kind == SIGN_LABEL && !read_label(&rest, a, ret)))
		return wrong(err, text);
	ret->pattern = arena_strndup(a, rest.at, rest.len);
	return ret->pattern ? 0 : err_set(err, ERR_LIMIT, "no memory");
}

/* A reference without tag and digest means the tag "latest". */
static bool image_fits(struct span pattern_text, const struct caller_container *c)
{
	struct image_ref pattern, given;

	if (span_starts(pattern_text, "sha256:"))
		return span_eq(pattern_text, span_of(c->image_id));
	if (!image_parse(pattern_text, &pattern) || !image_parse(span_of(c->image), &given))
		return false;
	if (!given.tag.len && !given.digest.len)
		given.tag = span_of("latest");
	return image_match(&pattern, given.name, given.tag, given.digest);
}

static bool label_fits(const struct caller_sign *sign, const struct caller_container *c)
{
	for (size_t i = 0; i < c->label_count; i++)
		if (strcmp(c->labels[i].name, sign->label) == 0)
			return glob_match(span_of(sign->pattern), span_of(c->labels[i].value));
	return false;
}

static bool maker_fits(const struct caller_sign *sign, const struct caller_container *c)
{
	if (!*c->owner)
		return !sign->made_by || !*sign->made_by;
	return sign->made_by && *sign->made_by &&
	       glob_match(span_of(sign->made_by), span_of(c->owner));
}

bool caller_sign_fits(const struct caller_sign *sign, const struct caller_container *c)
{
	if (!maker_fits(sign, c))
		return false;
	switch (sign->kind) {
	case SIGN_ID:
		return strcmp(sign->pattern, c->id) == 0;
	case SIGN_NAME:
		return glob_match(span_of(sign->pattern), span_of(c->name));
	case SIGN_IMAGE:
		return image_fits(span_of(sign->pattern), c);
	case SIGN_LABEL:
		return label_fits(sign, c);
	case SIGN_NOTHING:
	case SIGN_OUTSIDE:
	case SIGN_COUNT:
		break;
	}
	return false;
}

bool caller_label_is_listed(const char *const *globs, struct span name)
{
	for (; globs && *globs; globs++)
		if (glob_match(span_of(*globs), name))
			return true;
	return false;
}

bool caller_container_read(const struct jv *tree, struct arena *a, struct caller_container *ret)
{
	const struct jv *labels = jv_get(tree, "labels");
	size_t count = labels && labels->kind == JV_ARRAY ? labels->count : 0;
	struct caller_label *list;

	if (!tree || tree->kind != JV_OBJECT)
		return false;
	list = arena_take(a, count * sizeof(*list));
	if (!list)
		return false;
	for (size_t i = 0; i < count; i++)
		list[i] = (struct caller_label){jv_str(&labels->items[i], "name", ""),
						jv_str(&labels->items[i], "value", "")};
	*ret = (struct caller_container){
		.id = jv_str(tree, "id", ""),
		.name = jv_str(tree, "name", ""),
		.image = jv_str(tree, "image", ""),
		.image_id = jv_str(tree, "image_id", ""),
		.owner = jv_str(tree, "owner", ""),
		.labels = list,
		.label_count = count,
	};
	return true;
}
