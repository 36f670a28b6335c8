#include "gate/base/clock.h"

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
