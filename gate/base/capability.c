#include "gate/base/capability.h"

static const char *const names[] = {
#define CAPABILITY(name) #name,
#include "gate/base/capability.def"
#undef CAPABILITY
};
#define COUNT (sizeof(names) / sizeof(*names))

const char *capability_name(unsigned nr)
{
	return nr < COUNT ? names[nr] : NULL;
}

uint64_t capability_bit(struct span name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (span_is(name, names[i]))
			return UINT64_C(1) << i;
	return span_is(name, "ALL") ? ~UINT64_C(0) : 0;
}

uint64_t capability_engine_default(void)
{
	static const char *const given[] = {
		"CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",
		"MKNOD",   "NET_RAW",      "SETGID",           "SETUID",
		"SETFCAP", "SETPCAP",      "NET_BIND_SERVICE", "SYS_CHROOT",
		"KILL",    "AUDIT_WRITE",
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		all |= capability_bit(span_of(given[i]));
	return all;
}
