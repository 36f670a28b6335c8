#include "gate/base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_S 1000000000ull

static uint64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t clock_boot_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

uint64_t clock_boot_ms(void)
{
	return read_ns(CLOCK_BOOTTIME) / 1000000;
}

uint64_t clock_thread_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_unix_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}

void clock_format(uint64_t unix_ns, char out[CLOCK_TEXT_MAX])
{
	time_t s = (time_t)(unix_ns / NS_PER_S);
	struct tm tm;
	size_t used;

	gmtime_r(&s, &tm);
	used = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + used, CLOCK_TEXT_MAX - used, ".%09uZ", (unsigned)(unix_ns % NS_PER_S));
}

/* Whether text is made like pattern, in which each '0' stands for a digit. */
static bool is_made_like(const char *text, const char *pattern)
{
	for (; *pattern; pattern++, text++)
		if (*pattern == '0' ? *text < '0' || *text > '9' : *text != *pattern)
			return false;
	return true;
}

static int digits(const char *text, int count)
{
	int n = 0;

	for (; count; count--, text++)
		n = n * 10 + (*text - '0');
	return n;
}

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* By arithmetic alone: the C library would look for the time zone in files. */
int64_t clock_parse(const char *text, size_t len)
{
	static const int month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool day_only = len == 10 && is_made_like(text, "0000-00-00");
	int year, month, day, hour = 0, minute = 0, second = 0;
	int64_t days = 0;

	if (!day_only && !(len == 20 && is_made_like(text, "0000-00-00T00:00:00Z")))
		return -1;
	year = digits(text, 4);
	month = digits(text + 5, 2);
	day = digits(text + 8, 2);
	if (!day_only) {
		hour = digits(text + 11, 2);
		minute = digits(text + 14, 2);
		second = digits(text + 17, 2);
	}
	if (year < 1970 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59)
		return -1;
	if (day < 1 || day > month_days[month - 1] + (month == 2 && is_leap(year)))
		return -1;
	for (int y = 1970; y < year; y++)
		days += 365 + is_leap(y);
	for (int m = 1; m < month; m++)
		days += month_days[m - 1] + (m == 2 && is_leap(year));
	return ((days + day - 1) * 24 + hour) * 3600 + minute * 60 + second;
}
