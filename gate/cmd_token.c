#include "gate/command.h"

#include "gate/base/hash.h"
#include "gate/config_priv.h"

#include <sys/random.h>

#define TOKEN_BYTES 32

/* A token is told once; what the configuration gets does not lead back to it. */
int run_token(const struct args *args)
{
	unsigned char random[TOKEN_BYTES];
	char token[2 * TOKEN_BYTES + 4] = "sp-", hex[HASH_HEX_LEN + 1];
	struct err err = {0};
	struct hash hash;

	(void)args;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		err_sys(&err, "get random bytes");
		return command_failed(&err);
	}
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(token + 3 + 2 * i, 3, "%02x", random[i]);
	hash = hash_of(span_of(token));
	hash_hex(&hash, hex);
	printf("for the caller:         Authorization: Bearer %s\n", token);
	printf("for the configuration:  token = \"%s%s\"\n", TOKEN_PREFIX, hex);
	return EXIT_YES;
}
