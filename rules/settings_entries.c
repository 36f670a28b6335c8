#include "rules/settings_entries_priv.h"

#include "gate/base/nearest.h"
#include "rules/decision.h"
#include "rules/hide.h"
#include "rules/match_priv.h"
#include "rules/workload.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

int settings_wrong(const struct checking *c, const char *want, const struct jv *found)
{
	if (found->kind == JV_STRING)
		return err_set(c->err, ERR_CONFIG, "%s is expected, not \"%.60s\"", want,
			       found->str.at);
	return err_set(c->err, ERR_CONFIG, "%s is expected, not %s %s", want,
		       strchr("aeiou", jv_kind_name(found->kind)[0]) ? "an" : "a",
		       jv_kind_name(found->kind));
}

int settings_any_word(struct checking *c, struct jv *entry)
{
	if (entry->str.len > GLOB_MAX)
		return err_set(c->err, ERR_CONFIG, "longer than %d bytes", GLOB_MAX);
	return entry->str.len ? 0 : err_set(c->err, ERR_CONFIG, "an empty string grants nothing");
}

static int image_entry(struct checking *c, struct jv *entry)
{
	struct image_ref ref;
	struct buf full;
	char *copy;

	if (settings_any_word(c, entry) < 0)
		return -1;
	if (!image_parse(entry->str, &ref))
		return settings_wrong(c, "registry/repository[:tag][@digest]", entry);
	buf_init(&full, IMAGE_MAX);
	buf_put(&full, ref.name.at, ref.name.len);
	if (ref.tag.len)
		buf_printf(&full, ":%.*s", SPAN_FMT(ref.tag));
	if (ref.digest.len)
		buf_printf(&full, "@%.*s", SPAN_FMT(ref.digest));
	copy = arena_strndup(c->arena, buf_span(&full).at, buf_len(&full));
	*entry = jv_string(copy);
	buf_fini(&full);
	return copy && entry->str.len <= GLOB_MAX ? 0 : settings_any_word(c, entry);
}

static int network_entry(struct checking *c, struct jv *entry)
{
	if (span_is(entry->str, "host") || span_starts(entry->str, "container:"))
		return err_set(c->err, ERR_CONFIG, "the network \"%s\" can never be granted",
			       entry->str.at);
	return settings_any_word(c, entry);
}

static int port_entry(struct checking *c, struct jv *entry)
{
	unsigned char address[16];

	if (span_is(entry->str, "*") || inet_pton(AF_INET, entry->str.at, address) == 1 ||
	    inet_pton(AF_INET6, entry->str.at, address) == 1)
		return 0;
	return settings_wrong(c, "an address of the host, or \"*\" for all,", entry);
}

static const char *const capabilities[] = {
	"AUDIT_CONTROL",
	"AUDIT_READ",
	"AUDIT_WRITE",
	"BLOCK_SUSPEND",
	"BPF",
	"CHOWN",
	"CHECKPOINT_RESTORE",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"IPC_LOCK",
	"IPC_OWNER",
	"KILL",
	"LEASE",
	"LINUX_IMMUTABLE",
	"MAC_ADMIN",
	"MAC_OVERRIDE",
	"MKNOD",
	"NET_ADMIN",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_RAW",
	"PERFMON",
	"SETFCAP",
	"SETGID",
	"SETPCAP",
	"SETUID",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_CHROOT",
	"SYS_MODULE",
	"SYS_NICE",
	"SYS_PACCT",
	"SYS_PTRACE",
	"SYS_RAWIO",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"SYSLOG",
	"WAKE_ALARM",
};

static int capability_entry(struct checking *c, struct jv *entry)
{
	struct nearest near;
	char text[NEAREST_TEXT_MAX];
	char *name = arena_strndup(c->arena, entry->str.at, entry->str.len);

	if (!name)
		return err_set(c->err, ERR_LIMIT, "there is too much of it");
	for (char *p = name; *p; p++)
		*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
	if (strncmp(name, "CAP_", 4) == 0)
		name += 4;
	if (strcmp(name, "ALL") == 0)
		return err_set(c->err, ERR_CONFIG, "ALL cannot be granted; name each capability");
	near = nearest_to(span_of(name));
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(*capabilities); i++) {
		nearest_offer(&near, capabilities[i]);
		if (strcmp(name, capabilities[i]) != 0)
			continue;
		*entry = jv_string(name);
		return 0;
	}
	return err_set(c->err, ERR_CONFIG, "\"%.40s\" is no capability%s", entry->str.at,
		       nearest_said(near.best, text));
}

static int restart_entry(struct checking *c, struct jv *entry)
{
	static const char *const known[] = {"no", "on-failure", "always", "unless-stopped"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (span_is(entry->str, known[i]))
			return 0;
	return settings_wrong(c, "no, on-failure, always or unless-stopped", entry);
}

static int redact_entry(struct checking *c, struct jv *entry)
{
	return hide_find(entry->str) ? 0 : settings_wrong(c, "\"env\" or \"mounts\"", entry);
}

static int opaque_entry(struct checking *c, struct jv *entry)
{
	return span_is(entry->str, "buildkit") ? 0 : settings_wrong(c, "\"buildkit\"", entry);
}

static int label_entry(struct checking *c, struct jv *entry)
{
	if (span_starts(entry->str, "sallyport."))
		return err_set(c->err, ERR_CONFIG, "labels of the gate itself cannot be granted");
	return settings_any_word(c, entry);
}

static const struct {
	const char *setting;
	settings_entry_fn check;
} entry_checks[] = {
	{"images", image_entry},  {"local_images", image_entry},      {"networks", network_entry},
	{"ports", port_entry},    {"capabilities", capability_entry}, {"restart", restart_entry},
	{"labels", label_entry},  {"log_drivers", settings_any_word}, {"redact", redact_entry},
	{"opaque", opaque_entry},
};

settings_entry_fn settings_entry_check(const char *setting)
{
	for (size_t i = 0; i < sizeof(entry_checks) / sizeof(*entry_checks); i++)
		if (strcmp(entry_checks[i].setting, setting) == 0)
			return entry_checks[i].check;
	return settings_any_word;
}
