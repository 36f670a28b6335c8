#include "audit/note_priv.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define ALGORITHM   1 /* Ed25519 */
#define COSIGNATURE 4 /* Ed25519 over a time and a checkpoint, as witnesses sign */
#define B64         sodium_base64_VARIANT_ORIGINAL
#define DASH        "\xe2\x80\x94 "
#define SECRET      "PRIVATE+KEY+"

_Static_assert(crypto_sign_PUBLICKEYBYTES == sizeof(((struct note_key *)0)->bytes), "Ed25519");
_Static_assert(crypto_sign_SECRETKEYBYTES == sizeof(((struct note_signer *)0)->secret), "Ed25519");

int note_init(struct err *err)
{
	return sodium_init() < 0 ? err_set(err, ERR_SYSTEM, "libsodium cannot be used") : 0;
}

void note_name(const char *origin, char out[LINE_ORIGIN_MAX + 1])
{
	snprintf(out, LINE_ORIGIN_MAX + 1, "%s", origin);
	for (char *c = out; *c; c++)
		if (*c == '+')
			*c = '_';
}

/* --- keys --- */

/* SHA-256(name, newline, algorithm, key): its first four bytes. */
static void set_id_of(struct note_key *key, char algorithm)
{
	char tail[2 + sizeof(key->bytes)] = {'\n', algorithm};
	struct hash h;

	memcpy(tail + 2, key->bytes, sizeof(key->bytes));
	h = hash_two(span_of(key->name), (struct span){tail, sizeof(tail)});
	memcpy(key->id, h.bytes, sizeof(key->id));
}

static void set_id(struct note_key *key)
{
	set_id_of(key, ALGORITHM);
}

static void set_seed(struct note_signer *s, const unsigned char seed[crypto_sign_SEEDBYTES])
{
	crypto_sign_seed_keypair(s->key.bytes, s->secret, seed);
	set_id(&s->key);
}

void note_signer_make(const char *name, struct note_signer *ret)
{
	unsigned char seed[crypto_sign_SEEDBYTES];

	*ret = (struct note_signer){0};
	snprintf(ret->key.name, sizeof(ret->key.name), "%s", name);
	randombytes_buf(seed, sizeof(seed));
	set_seed(ret, seed);
	sodium_memzero(seed, sizeof(seed));
}

void note_signer_wipe(struct note_signer *s)
{
	sodium_memzero(s, sizeof(*s));
}

void note_id_hex(const struct note_key *key, char out[NOTE_ID_HEX])
{
	sodium_bin2hex(out, NOTE_ID_HEX, key->id, sizeof(key->id));
}

bool note_key_same(const struct note_key *a, const struct note_key *b)
{
	return strcmp(a->name, b->name) == 0 && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* "NAME+ID+base64(algorithm, bytes)" */
static void format(char *out, size_t size, const struct note_key *key, const unsigned char *bytes)
{
	unsigned char with[1 + 32] = {ALGORITHM};
	char text[64], id[NOTE_ID_HEX];

	memcpy(with + 1, bytes, 32);
	sodium_bin2base64(text, sizeof(text), with, sizeof(with), B64);
	note_id_hex(key, id);
	snprintf(out, size, "%s+%s+%s", key->name, id, text);
	sodium_memzero(with, sizeof(with));
	sodium_memzero(text, sizeof(text));
}

void note_key_format(const struct note_key *key, char out[NOTE_VKEY_MAX])
{
	format(out, NOTE_VKEY_MAX, key, key->bytes);
}

void note_signer_format(const struct note_signer *s, char out[NOTE_SKEY_MAX])
{
	unsigned char seed[crypto_sign_SEEDBYTES];

	crypto_sign_ed25519_sk_to_seed(seed, s->secret);
	memcpy(out, SECRET, sizeof(SECRET) - 1);
	format(out + sizeof(SECRET) - 1, NOTE_SKEY_MAX - (sizeof(SECRET) - 1), &s->key, seed);
	sodium_memzero(seed, sizeof(seed));
}

/* Takes the parts apart; what the id says is not compared yet. */
static bool parse(struct span text, unsigned char algorithm, struct note_key *key,
		  unsigned char bytes[32], unsigned char id[4])
{
	struct span name, id_text;
	unsigned char with[1 + 32];
	size_t len = 0;

	if (!span_cut(&text, '+', &name) || !span_cut(&text, '+', &id_text) || !name.len ||
	    name.len > LINE_ORIGIN_MAX ||
	    sodium_hex2bin(id, 4, id_text.at, id_text.len, NULL, &len, NULL) < 0 || len != 4 ||
	    sodium_base642bin(with, sizeof(with), text.at, text.len, NULL, &len, NULL, B64) < 0 ||
	    len != sizeof(with) || with[0] != algorithm)
		return false;
	*key = (struct note_key){0};
	memcpy(key->name, name.at, name.len);
	memcpy(bytes, with + 1, 32);
	sodium_memzero(with, sizeof(with));
	return true;
}

static bool parse_public(struct span text, char algorithm, struct note_key *ret)
{
	unsigned char id[4];
	struct note_key key;
	unsigned char bytes[32];

	if (!parse(text, (unsigned char)algorithm, &key, bytes, id))
		return false;
	memcpy(key.bytes, bytes, sizeof(bytes));
	set_id_of(&key, algorithm);
	if (memcmp(key.id, id, sizeof(id)) != 0)
		return false;
	*ret = key;
	return true;
}

bool note_key_parse(struct span text, struct note_key *ret)
{
	return parse_public(text, ALGORITHM, ret);
}

bool note_witness_parse(struct span text, struct note_key *ret)
{
	return parse_public(text, COSIGNATURE, ret);
}

bool note_signer_parse(struct span text, struct note_signer *ret)
{
	unsigned char id[4], seed[crypto_sign_SEEDBYTES];
	struct note_signer s = {0};
	bool good;

	if (!span_starts(text, SECRET) ||
	    !parse(span_skip(text, sizeof(SECRET) - 1), ALGORITHM, &s.key, seed, id))
		return false;
	set_seed(&s, seed);
	sodium_memzero(seed, sizeof(seed));
	good = memcmp(s.key.id, id, sizeof(id)) == 0;
	if (good)
		*ret = s;
	note_signer_wipe(&s);
	return good;
}

/* --- notes --- */

void note_sign(const struct note_signer *s, struct span text, char out[NOTE_SIGNATURE_MAX])
{
	unsigned char with[4 + crypto_sign_BYTES];

	memcpy(with, s->key.id, 4);
	crypto_sign_detached(with + 4, NULL, (const unsigned char *)text.at, text.len, s->secret);
	sodium_bin2base64(out, NOTE_SIGNATURE_MAX, with, sizeof(with), B64);
}

bool note_signed_by(const struct note_key *key, struct span text, struct span signature)
{
	unsigned char with[4 + crypto_sign_BYTES];
	size_t len = 0;

	return sodium_base642bin(with, sizeof(with), signature.at, signature.len, NULL, &len, NULL,
				 B64) == 0 &&
	       len == sizeof(with) && memcmp(with, key->id, 4) == 0 &&
	       crypto_sign_verify_detached(with + 4, (const unsigned char *)text.at, text.len,
					   key->bytes) == 0;
}

bool note_cosigned_by(const struct note_key *witness, struct span text, struct span signature,
		      uint64_t *ret_time_s)
{
	unsigned char with[4 + 8 + crypto_sign_BYTES];
	uint64_t time_s = 0;
	struct buf said;
	size_t len = 0;
	bool good;

	if (sodium_base642bin(with, sizeof(with), signature.at, signature.len, NULL, &len, NULL,
			      B64) < 0 ||
	    len != sizeof(with) || memcmp(with, witness->id, 4) != 0)
		return false;
	for (int i = 0; i < 8; i++)
		time_s = time_s << 8 | with[4 + i];
	buf_init(&said, NOTE_CHECKPOINT_MAX + 64);
	buf_printf(&said, "cosignature/v1\ntime %llu\n", (unsigned long long)time_s);
	buf_put(&said, text.at, text.len);
	good = !buf_spent(&said) &&
	       crypto_sign_verify_detached(with + 12, (const unsigned char *)buf_span(&said).at,
					   buf_len(&said), witness->bytes) == 0;
	buf_fini(&said);
	if (good)
		*ret_time_s = time_s;
	return good;
}

void note_write(struct buf *out, struct span text, const char *name, const char *signature)
{
	buf_put(out, text.at, text.len);
	buf_printf(out, "\n" DASH "%s %s\n", name, signature);
}

/* --- checkpoints --- */

void note_hash_text(const struct hash *h, char out[NOTE_ROOT_TEXT])
{
	sodium_bin2base64(out, NOTE_ROOT_TEXT, h->bytes, sizeof(h->bytes), B64);
}

void checkpoint_text(struct buf *out, const char *origin, uint64_t size, const struct hash *root)
{
	char text[NOTE_ROOT_TEXT];

	note_hash_text(root, text);
	buf_printf(out, "%s\n%llu\n%s\n", origin, (unsigned long long)size, text);
}

static bool parse_size(struct span s, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] < '0' || s.at[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(s.at[i] - '0'), &value))
			return false;
	*ret = value;
	return s.len && (s.len == 1 || *s.at != '0');
}

bool checkpoint_parse(struct span note, struct checkpoint *ret)
{
	const char *gap = memmem(note.at, note.len, "\n\n", 2);
	struct checkpoint c;
	struct span rest, size, root;
	size_t len = 0;

	if (!gap)
		return false;
	c.text = (struct span){note.at, (size_t)(gap + 1 - note.at)};
	c.signatures = span_skip(note, c.text.len + 1);
	rest = c.text;
	if (!span_cut(&rest, '\n', &c.origin) || !c.origin.len || !span_cut(&rest, '\n', &size) ||
	    !span_cut(&rest, '\n', &root) || !parse_size(size, &c.size) ||
	    sodium_base642bin(c.root.bytes, sizeof(c.root.bytes), root.at, root.len, NULL, &len,
			      NULL, B64) < 0 ||
	    len != sizeof(c.root.bytes))
		return false;
	*ret = c;
	return true;
}

bool note_next(struct span *rest, struct checkpoint *ret)
{
	while (rest->len) {
		const char *gap = memmem(rest->at, rest->len, "\n\n" DASH, sizeof("\n\n" DASH) - 1);
		struct span note = *rest, after, line;

		if (!gap)
			return false;
		after = span_skip(*rest, (size_t)(gap + 2 - rest->at));
		while (span_starts(after, DASH) && span_cut(&after, '\n', &line))
			;
		if (span_starts(after, DASH))
			return false;
		note.len = (size_t)(after.at - note.at);
		*rest = after;
		if (checkpoint_parse(note, ret))
			return true;
		/* The first may begin in its middle, if only the end of a file was read. */
	}
	return false;
}

bool checkpoint_signed_by(const struct checkpoint *c, const struct note_key *key)
{
	struct span rest = c->signatures, line, name;

	while (span_cut(&rest, '\n', &line)) {
		if (!span_starts(line, DASH))
			continue;
		line = span_skip(line, sizeof(DASH) - 1);
		if (span_cut(&line, ' ', &name) && span_is(name, key->name) &&
		    note_signed_by(key, c->text, line))
			return true;
	}
	return false;
}

bool checkpoint_cosigned_by(const struct checkpoint *c, const struct note_key *witness,
			    uint64_t *ret_time_s)
{
	struct span rest = c->signatures, line, name;

	while (span_cut(&rest, '\n', &line)) {
		if (!span_starts(line, DASH))
			continue;
		line = span_skip(line, sizeof(DASH) - 1);
		if (span_cut(&line, ' ', &name) && span_is(name, witness->name) &&
		    note_cosigned_by(witness, c->text, line, ret_time_s))
			return true;
	}
	return false;
}
