#include "proxy/sandbox/inside/names.h"

#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

int name_decode(char *name)
{
	char *to = name;

	for (const char *from = name; *from; from++) {
		int high, low;

		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = digit(from[1]);
		low = high < 0 ? -1 : digit(from[2]);
		if (low < 0 || high + low == 0)
			return -1;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

static int is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~/", c));
}

const char *name_encode(char *room, size_t size, const char *name)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *name && n + 4 <= size; name++) {
		unsigned char c = (unsigned char)*name;

		if (is_plain(*name)) {
			room[n++] = *name;
			continue;
		}
		room[n++] = '%';
		room[n++] = digits[c >> 4];
		room[n++] = digits[c & 15];
	}
	room[n] = '\0';
	return room;
}
