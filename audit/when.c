#include "audit/when.h"

#include "gate/base/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S    1000000000ull
#define SECONDS_LEN 19 /* "2026-01-31T12:00:00" */
#define YEARS_MAX   (400ull * 366 * 86400)

static int two_digits(const char *at)
{
	if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9')
		return -1;
	return (at[0] - '0') * 10 + at[1] - '0';
}

/* "90s": how many seconds; false if it is none. */
static bool take_span(const char *text, uint64_t *ret)
{
	static const struct {
		char letter;
		unsigned seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	size_t digits = strspn(text, "0123456789");
	uint64_t n = 0;

	if (!digits || digits > 9 || strlen(text) != digits + 1)
		return false;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (units[i].letter == text[digits]) {
			*ret = n * units[i].seconds;
			return *ret <= YEARS_MAX;
		}
	return false;
}

/* "Z" or "+01:00" in seconds. */
static bool take_offset(const char *text, int64_t *ret)
{
	int hours, minutes;

	*ret = 0;
	if (strcmp(text, "Z") == 0)
		return true;
	if ((*text != '+' && *text != '-') || strlen(text) != 6 || text[3] != ':')
		return false;
	hours = two_digits(text + 1);
	minutes = two_digits(text + 4);
	*ret = ((int64_t)hours * 60 + minutes) * 60 * (*text == '-' ? -1 : 1);
	return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

static const char *take_fraction(const char *text, uint64_t *ret)
{
	uint64_t unit = NS_PER_S / 10;

	*ret = 0;
	if (*text != '.' || text[1] < '0' || text[1] > '9')
		return text;
	for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
		*ret += (uint64_t)(*text - '0') * unit;
	return text;
}

static bool take_moment(const char *text, uint64_t *ret)
{
	char whole[SECONDS_LEN + 2];
	uint64_t fraction = 0;
	int64_t seconds, offset = 0;

	if (strlen(text) <= 10) {
		seconds = clock_parse(text, strlen(text));
	} else {
		if (strlen(text) < SECONDS_LEN + 1)
			return false;
		memcpy(whole, text, SECONDS_LEN);
		memcpy(whole + SECONDS_LEN, "Z", 2);
		seconds = clock_parse(whole, SECONDS_LEN + 1);
		if (!take_offset(take_fraction(text + SECONDS_LEN, &fraction), &offset))
			return false;
	}
	if (seconds < 0 || seconds - offset < 0 || seconds > 9000000000)
		return false;
	*ret = (uint64_t)(seconds - offset) * NS_PER_S + fraction;
	return true;
}

int when_parse(const char *text, uint64_t now_ns, uint64_t *ret, struct err *err)
{
	uint64_t seconds;

	if (take_span(text, &seconds)) {
		*ret = seconds > now_ns / NS_PER_S ? 0 : now_ns - seconds * NS_PER_S;
		return 0;
	}
	if (take_moment(text, ret))
		return 0;
	return err_set(err, ERR_INPUT,
		       "'%.60s' is no time: write 2026-01-31T12:00:00Z, 2026-01-31, or 2h, 7d",
		       text);
}
