#include "gate/base/uuid.h"

#include "gate/base/clock.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One system call serves many ids. */
static void random_bytes(unsigned char *out, size_t len)
{
	static unsigned char pool[2048];
	static size_t left;

	if (left < len) {
		if (getrandom(pool, sizeof(pool), 0) != (ssize_t)sizeof(pool))
			abort();
		left = sizeof(pool);
	}
	left -= len;
	memcpy(out, pool + left, len);
}

void uuid_make(char out[UUID_TEXT_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";
	uint64_t ms = clock_unix_ns() / 1000000;
	unsigned char b[16];

	for (int i = 0; i < 6; i++)
		b[i] = (unsigned char)(ms >> (8 * (5 - i)));
	random_bytes(b + 6, 10);
	b[6] = (unsigned char)(0x70 | (b[6] & 0x0f)); /* version 7 */
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f)); /* variant 10 */
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = hex[b[i] >> 4];
		*out++ = hex[b[i] & 15];
	}
	*out = '\0';
}
