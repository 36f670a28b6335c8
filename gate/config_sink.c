/* config_sink.c - where the log's records are brought, as the configuration writes it. */
#include "gate/config_priv.h"

#include <string.h>
#include <sys/un.h>

#define NAME_MOST    64
#define STATE_FOLDER "/var/lib/sallyport-ship"
#define JOURNAL      "/run/systemd/journal/socket"
#define HTTPS_PORT   ":443"

/* The keys of each kind, besides kind, state. */
static const struct {
	enum sink_kind kind;
	const char *name, *needs, *takes;
} kinds[] = {
	{SINK_POSTGRES, "postgres", "connection", ""},
	{SINK_SYSLOG, "syslog", "address", " ca cert key format only "},
	{SINK_HTTPS, "https", "url", " ca cert key token_file format only "},
	{SINK_JOURNALD, "journald", "", " address only "},
};

static int check_keys(const struct config_entry *e, enum sink_kind kind, struct err *err)
{
	static const char *const all[] = {"connection", "address",    "url",    "ca",  "cert",
					  "key",        "token_file", "format", "only"};
	size_t k = 0;
	char word[32];

	while (kinds[k].kind != kind)
		k++;
	if (*kinds[k].needs && !jv_get(e->value, kinds[k].needs))
		return config_wrong(e, err, "kind = \"%s\" needs '%s'", kinds[k].name,
				    kinds[k].needs);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		snprintf(word, sizeof(word), " %s ", all[i]);
		if (jv_get(e->value, all[i]) && strcmp(all[i], kinds[k].needs) != 0 &&
		    !strstr(kinds[k].takes, word))
			return config_wrong(e, err, "'%s' is not of kind \"%s\"", all[i],
					    kinds[k].name);
	}
	return 0;
}

/* It names a file. */
static bool is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	return *name && strlen(name) <= NAME_MOST && strspn(name, letters) == strlen(name);
}

static int wrong_address(const struct config_entry *e, const char *address, struct err *err)
{
	return config_wrong(e, err,
			    "'%.80s' is no address: \"unix:///PATH\" or, of syslog, "
			    "\"tls://HOST:PORT\"",
			    address);
}

/* "HOST:PORT" as config_address_tcp() knows it. */
static int take_host(const char *text, size_t len, struct arena *a, struct sink_conf *to)
{
	char address[512];
	struct conf_tcp tcp;

	if (len > 300)
		return -1;
	snprintf(address, sizeof(address), "tcp://%.*s", (int)len, text);
	if (config_address_tcp(address, a, &tcp) < 0 || !tcp.host)
		return -1;
	to->host = tcp.host;
	to->port = tcp.port;
	return 0;
}

static int build_address(const struct config_entry *e, struct arena *a, struct sink_conf *to,
			 struct err *err)
{
	static const char tls[] = "tls://";
	const char *address = jv_str(e->value, "address", "unix://" JOURNAL);
	const char *path = config_address_path(address);

	if (path) {
		if (*path != '/' || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
			return wrong_address(e, address, err);
		if (*to->ca || *to->cert)
			return config_wrong(e, err, "ca and cert are of tls://");
		to->socket = path;
		return 0;
	}
	if (to->kind != SINK_SYSLOG || strncmp(address, tls, sizeof(tls) - 1) != 0 ||
	    take_host(address + sizeof(tls) - 1, strlen(address) - (sizeof(tls) - 1), a, to) < 0)
		return wrong_address(e, address, err);
	return 0;
}

/* Printable, since it stands in the head of a request. */
static bool is_path(const char *path)
{
	for (; *path; path++)
		if (*path <= 0x20 || *path >= 0x7f || *path == '#')
			return false;
	return true;
}

int config_sink_url(const char *url, struct arena *a, struct sink_conf *to, struct err *err)
{
	static const char https[] = "https://";
	const char *host = url + sizeof(https) - 1;
	char authority[300];
	size_t len;
	bool bare;

	if (strncmp(url, https, sizeof(https) - 1) != 0)
		return err_set(err, ERR_CONFIG, "url must begin with https://");
	len = strcspn(host, "/?#");
	to->path = host[len] ? host + len : "/";
	bare = !memchr(host, ':', len) || (len && host[len - 1] == ']');
	if (len + sizeof(HTTPS_PORT) > sizeof(authority) || *to->path != '/' || !is_path(to->path))
		return err_set(err, ERR_CONFIG, "url is none: https://HOST:PORT/PATH");
	snprintf(authority, sizeof(authority), "%.*s%s", (int)len, host, bare ? HTTPS_PORT : "");
	if (take_host(authority, strlen(authority), a, to) < 0)
		return err_set(err, ERR_CONFIG, "url is none: https://HOST:PORT/PATH");
	return 0;
}

static int build_url(const struct config_entry *e, struct arena *a, struct sink_conf *to,
		     struct err *err)
{
	struct err wrong;

	if (config_sink_url(jv_str(e->value, "url", ""), a, to, &wrong) < 0)
		return config_wrong(e, err, "%s", wrong.msg);
	return 0;
}

static int build_format(const struct config_entry *e, struct sink_conf *to, struct err *err)
{
	const char *format = jv_str(e->value, "format", NULL);

	to->format = to->kind == SINK_HTTPS ? EXPORT_OCSF : EXPORT_NONE;
	if (!format)
		return 0;
	to->format = export_format_find(format);
	if ((to->format == EXPORT_NONE && strcmp(format, "record") != 0) ||
	    (to->format == EXPORT_CEF && to->kind == SINK_HTTPS))
		return config_wrong(e, err,
				    "format is \"record\", \"ocsf\", \"ecs\" or, of "
				    "syslog, \"cef\"");
	return 0;
}

static int build_only(const struct config_entry *e, struct sink_conf *to, struct err *err)
{
	const struct jv *words = jv_get(e->value, "only");

	for (size_t i = 0; words && i < words->count; i++) {
		unsigned one = sink_only_find(words->items[i].str.at);

		if (!one)
			return config_wrong(e, err,
					    "only knows no '%.40s'; `sallyport help sinks` lists "
					    "what it knows",
					    words->items[i].str.at);
		to->only |= one;
	}
	return words && !to->only ? config_wrong(e, err, "only is empty: nothing would be shipped")
				  : 0;
}

static int build_place(const struct config_entry *e, struct arena *a, struct sink_conf *to,
		       struct err *err)
{
	int rc = 0;

	if (to->kind == SINK_SYSLOG || to->kind == SINK_JOURNALD)
		rc = build_address(e, a, to, err);
	else if (to->kind == SINK_HTTPS)
		rc = build_url(e, a, to, err);
	if (rc < 0)
		return -1;
	if (*to->host && !*to->ca)
		return config_wrong(e, err, "'ca' is missing: whose certificate is %s's?",
				    to->host);
	if (!*to->cert != !*to->key)
		return config_wrong(e, err, "'cert' and 'key' go together");
	if (strstr(to->connection, "password=") || strstr(to->connection, "password ="))
		return config_wrong(e, err,
				    "a password has no place in a configuration: say "
				    "passfile=/PATH in 'connection'");
	return 0;
}

static int build_one(const struct config_entry *e, struct arena *a, struct sink_conf *to,
		     struct err *err)
{
	*to = (struct sink_conf){
		.name = e->name,
		.kind = sink_kind_find(jv_str(e->value, "kind", "")),
		.connection = jv_str(e->value, "connection", ""),
		.socket = "",
		.host = "",
		.path = "",
		.ca = jv_str(e->value, "ca", ""),
		.cert = jv_str(e->value, "cert", ""),
		.key = jv_str(e->value, "key", ""),
		.token_file = jv_str(e->value, "token_file", ""),
		.state = jv_str(e->value, "state", STATE_FOLDER),
	};
	if (!is_name(to->name))
		return config_wrong(e, err,
				    "a sink's name has letters, digits, - and _, at most %d",
				    NAME_MOST);
	if (check_keys(e, to->kind, err) < 0 || build_format(e, to, err) < 0 ||
	    build_only(e, to, err) < 0)
		return -1;
	return build_place(e, a, to, err);
}

int config_build_sinks(const struct jv *entries, struct arena *a, struct config *ret,
		       struct err *err)
{
	struct sink_conf *list = arena_take(a, CONFIG_ENTRIES_MAX * sizeof(*list));
	struct config_entry e;
	size_t count = 0;

	if (!list)
		return err_set(err, ERR_LIMIT, "%s: too large", ret->path);
	for (; config_entry_at(entries, ret->path, "sink", count, &e); count++)
		if (build_one(&e, a, &list[count], err) < 0)
			return -1;
	ret->sinks = ret->auditor.sinks = list;
	ret->sink_count = ret->auditor.sink_count = count;
	return 0;
}
