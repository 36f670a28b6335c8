#include "gate/pack.h"

#include "audit/signed.h"
#include "gate/base/hash.h"
#include "gate/bundle.h"
#include "gate/profile_folder.h"
#include "rules/seccomp.h"

#include <stdio.h>
#include <string.h>

#define MAGIC          "sallyport-rules 1\n"
#define NAME_MAX_BYTES 200

bool pack_is(struct span text)
{
	return span_starts(text, MAGIC);
}

/* One of *.lua or *.seccomp.json without a folder, and no tests: what a folder of profiles would
 * have. */
static bool is_file_name(struct span name)
{
	char copy[NAME_MAX_BYTES + 1];

	if (name.len <= 4 || name.len > NAME_MAX_BYTES || name.at[0] == '.' ||
	    !(span_ends(name, ".lua") || span_ends(name, SECCOMP_SUFFIX)))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.at[i] <= ' ' || name.at[i] == '/' ||
		    (unsigned char)name.at[i] >= 0x7f)
			return false;
	memcpy(copy, name.at, name.len);
	copy[name.len] = 0;
	return !profile_folder_is_test(copy);
}

/* --- writing --- */

static struct jv manifest_of(const struct pack_origin *o, const struct rule_source *files,
			     size_t count, struct arena *a)
{
	struct jv manifest = jv_object(), list = jv_array();

	jv_set(a, &manifest, "name", jv_string(o->name));
	jv_set(a, &manifest, "made", jv_string(o->made));
	jv_set(a, &manifest, "commit", jv_string(o->commit));
	jv_set(a, &manifest, "author", jv_string(o->author));
	jv_set(a, &manifest, "approver", jv_string(o->approver));
	jv_set(a, &manifest, "ticket", jv_string(o->ticket));
	for (size_t i = 0; i < count; i++) {
		struct jv file = jv_object();
		struct hash h = hash_of(files[i].text);
		char hex[HASH_HEX_LEN + 1];

		hash_hex(&h, hex);
		jv_set(a, &file, "name", jv_string(files[i].name));
		jv_set(a, &file, "bytes", jv_int((int64_t)files[i].text.len));
		jv_set(a, &file, "sha256", jv_string(arena_strndup(a, hex, HASH_HEX_LEN)));
		jv_push(a, &list, file);
	}
	jv_set(a, &manifest, "files", list);
	return manifest;
}

int pack_write(const struct pack_origin *origin, const struct rule_source *files, size_t count,
	       struct span secret, struct buf *out, struct err *err)
{
	struct arena *a = arena_create(4 << 20);
	struct buf head;
	struct jv manifest;
	int rc;

	if (!a)
		return err_set(err, ERR_SYSTEM, "no memory");
	for (size_t i = 0; i < count; i++)
		if (!is_file_name(span_of(files[i].name))) {
			arena_destroy(a);
			return err_set(err, ERR_INPUT, "'%s' is no name of a file of profiles",
				       files[i].name);
		}
	manifest = manifest_of(origin, files, count, a);
	buf_init(&head, PACK_MAX);
	buf_puts(&head, MAGIC);
	jv_write(&head, &manifest);
	buf_puts(&head, "\n");
	rc = signed_write(secret, buf_span(&head), out, err);
	buf_puts(out, "\n");
	for (size_t i = 0; i < count; i++)
		buf_put(out, files[i].text.at, files[i].text.len);
	if (rc == 0 && (buf_spent(out) || buf_spent(&head) || arena_spent(a)))
		rc = err_set(err, ERR_LIMIT, "the bundle takes more than %zu bytes", PACK_MAX);
	buf_fini(&head);
	arena_destroy(a);
	return rc;
}

/* --- reading --- */

static const char *text_of(const struct jv *manifest, const char *key)
{
	const struct jv *v = jv_get(manifest, key);

	return v && v->kind == JV_STRING ? v->str.at : NULL;
}

static int take_origin(const struct jv *manifest, struct pack_origin *ret)
{
	ret->name = text_of(manifest, "name");
	ret->made = text_of(manifest, "made");
	ret->commit = text_of(manifest, "commit");
	ret->author = text_of(manifest, "author");
	ret->approver = text_of(manifest, "approver");
	ret->ticket = text_of(manifest, "ticket");
	return manifest->kind == JV_OBJECT && manifest->count == 7 && ret->name && ret->made &&
			       ret->commit && ret->author && ret->approver && ret->ticket
		       ? 0
		       : -1;
}

static bool is_new(const struct pack *p, struct span name)
{
	for (size_t i = 0; i < p->file_count; i++)
		if (span_is(name, p->files[i].name))
			return false;
	return true;
}

static int take_file(struct pack *p, const struct jv *entry, struct span *rest, struct err *err)
{
	const struct jv *name = jv_get(entry, "name"), *bytes = jv_get(entry, "bytes"),
			*sum = jv_get(entry, "sha256");
	struct hash want, found;

	if (entry->kind != JV_OBJECT || entry->count != 3 || !name || name->kind != JV_STRING ||
	    !is_file_name(name->str) || !is_new(p, name->str) || !bytes || bytes->kind != JV_INT ||
	    bytes->i < 0 || (uint64_t)bytes->i > BUNDLE_SOURCE_MAX || !sum ||
	    sum->kind != JV_STRING || hash_parse(sum->str, &want) < 0)
		return err_set(err, ERR_INPUT, "its manifest lists a file that cannot be");
	if ((uint64_t)bytes->i > rest->len)
		return err_set(err, ERR_INPUT, "%s is cut short", name->str.at);
	p->files[p->file_count] = (struct rule_source){name->str.at, {rest->at, (size_t)bytes->i}};
	found = hash_of(p->files[p->file_count].text);
	if (!hash_eq(&found, &want))
		return err_set(err, ERR_INPUT, "%s is not what was signed", name->str.at);
	p->file_count++;
	*rest = span_skip(*rest, (size_t)bytes->i);
	return 0;
}

static int take_files(struct pack *p, const struct jv *list, struct span rest, struct err *err)
{
	if (!list || list->kind != JV_ARRAY || !list->count || list->count > PACK_FILES_MAX)
		return err_set(err, ERR_INPUT, "its manifest lists not 1 to %d files",
			       PACK_FILES_MAX);
	if (!rest.len || *rest.at != '\n')
		return err_set(err, ERR_INPUT, "an empty line is missing behind the signature");
	rest = span_skip(rest, 1);
	for (size_t i = 0; i < list->count; i++)
		if (take_file(p, &list->items[i], &rest, err) < 0)
			return -1;
	return rest.len ? err_set(err, ERR_INPUT, "something follows behind its last file") : 0;
}

int pack_read(struct span text, const char *const *keys, struct arena *a, struct pack *ret,
	      struct err *err)
{
	struct span rest = text, head;
	struct jv *manifest = arena_take(a, sizeof(*manifest));
	enum jv_fault fault;

	*ret = (struct pack){0};
	if (!manifest || text.len > PACK_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %zu bytes", PACK_MAX);
	if (!pack_is(text))
		return err_set(err, ERR_INPUT, "it is no bundle of rules");
	if (signed_read(&rest, keys, &head, &ret->signer, err) < 0)
		return -1;
	ret->manifest = span_skip(head, sizeof(MAGIC) - 1);
	ret->manifest.len -= ret->manifest.len > 0; /* the newline */
	if (jv_parse(a, ret->manifest, manifest, &fault, err) < 0)
		return err_wrap(err, "its manifest");
	if (take_origin(manifest, &ret->origin) < 0)
		return err_set(err, ERR_INPUT, "its manifest is not as pack.h has it");
	return take_files(ret, jv_get(manifest, "files"), rest, err);
}
