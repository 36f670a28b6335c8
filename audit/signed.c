#include "audit/signed.h"

#include "audit/note_priv.h"

#include <stdio.h>
#include <string.h>

#define DASH "\xe2\x80\x94 "

_Static_assert(SIGNED_KEY_MAX >= NOTE_SKEY_MAX, "room for either half");

int signed_init(struct err *err)
{
	return note_init(err);
}

static bool is_name(const char *name)
{
	if (!*name || strlen(name) > LINE_ORIGIN_MAX)
		return false;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (*c <= ' ' || *c == '+' || *c >= 0x7f)
			return false;
	return true;
}

int signed_key_make(const char *name, char secret[SIGNED_KEY_MAX], char key[SIGNED_KEY_MAX],
		    struct err *err)
{
	struct note_signer s;

	if (!is_name(name))
		return err_set(
			err, ERR_INPUT,
			"a key's name is of printable letters without '+' and spaces, at most %d",
			LINE_ORIGIN_MAX);
	note_signer_make(name, &s);
	note_signer_format(&s, secret);
	note_key_format(&s.key, key);
	note_signer_wipe(&s);
	return 0;
}

bool signed_key_is_valid(struct span key)
{
	struct note_key parsed;

	return note_key_parse(key, &parsed);
}

int signed_write(struct span secret, struct span text, struct buf *out, struct err *err)
{
	char signature[NOTE_SIGNATURE_MAX];
	struct note_signer s;

	if (!note_signer_parse(secret, &s))
		return err_set(err, ERR_INPUT, "it holds no secret key");
	note_sign(&s, text, signature);
	note_write(out, text, s.key.name, signature);
	note_signer_wipe(&s);
	return 0;
}

/* The key of that name; a name may be that of several keys. */
static bool is_signed_by(const char *const *keys, struct span text, struct span name,
			 struct span signature, struct span *ret_name)
{
	for (size_t i = 0; keys[i]; i++) {
		struct note_key key;

		if (!note_key_parse(span_of(keys[i]), &key) || !span_is(name, key.name) ||
		    !note_signed_by(&key, text, signature))
			continue;
		*ret_name = (struct span){keys[i], name.len};
		return true;
	}
	return false;
}

int signed_read(struct span *rest, const char *const *keys, struct span *ret_text,
		struct span *ret_name, struct err *err)
{
	const char *end = memmem(rest->at, rest->len, "\n\n" DASH, 2 + sizeof(DASH) - 1);
	struct span line, name;
	bool found = false;

	if (!end)
		return err_set(err, ERR_INPUT, "it is not signed");
	*ret_text = (struct span){rest->at, (size_t)(end - rest->at) + 1};
	*rest = span_skip(*rest, ret_text->len + 1);
	while (span_starts(*rest, DASH)) {
		span_cut(rest, '\n', &line);
		line = span_skip(line, sizeof(DASH) - 1);
		span_cut(&line, ' ', &name);
		found = found || is_signed_by(keys, *ret_text, name, line, ret_name);
	}
	return found ? 0 : err_set(err, ERR_INPUT, "none of the known keys has signed it");
}
