/*
 * bundle_fetch.c - fetches a signed bundle of rules over HTTPS, and keeps it if it is new and
 * right.
 *
 * It runs beside the gate, from a timer: no process of the gate reaches out.  What is
 * kept is the last good one: a server that is down, or hands out something else, changes nothing.
 */
#include "gate/command.h"

#include "audit/signed.h"
#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/pack.h"
#include "proxy/engine_get.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"
#define LIMIT_MS  60000
#define CA_MAX    ((size_t)4 << 20)
#define HTTPS     "https://"

struct place {
	char host[256];
	unsigned port;
	const char *target;
};

/* https://HOST[:PORT]/TARGET, with nothing that a head could be split with. */
static int read_url(const char *url, struct place *ret, struct err *err)
{
	struct span rest = span_of(url), host, port;

	for (const char *c = url; *c; c++)
		if (!isgraph((unsigned char)*c))
			return err_set(err, ERR_INPUT,
				       "the URL holds something else than printable letters");
	if (!span_starts(rest, HTTPS) || !strchr(url + sizeof(HTTPS) - 1, '/'))
		return err_set(err, ERR_INPUT, "'%.100s' is no URL like https://host/rules.bundle",
			       url);
	rest = span_skip(rest, sizeof(HTTPS) - 1);
	ret->target = strchr(rest.at, '/');
	rest.len = (size_t)(ret->target - rest.at);
	span_cut(&rest, ':', &host);
	port = rest;
	ret->port = port.len ? (unsigned)strtoul(port.at, NULL, 10) : 443;
	if (!host.len || host.len >= sizeof(ret->host) || memchr(host.at, '@', host.len) ||
	    !ret->port || ret->port > 65535)
		return err_set(err, ERR_INPUT, "'%.100s' names no host, or no port", url);
	snprintf(ret->host, sizeof(ret->host), "%.*s", SPAN_FMT(host));
	return 0;
}

/* The tag under which the server had what is kept here; "" if nothing is, so that all is new. */
static void read_tag(const char *file, char out[ENGINE_TAG_MAX])
{
	char path[PATH_MAX];
	struct err unheard = {0};
	struct span line, rest;
	struct buf text;

	out[0] = 0;
	snprintf(path, sizeof(path), "%s.etag", file);
	if (access(file, R_OK) < 0 || io_read_file(path, ENGINE_TAG_MAX, &text, &unheard) < 0)
		return;
	rest = buf_span(&text);
	span_cut(&rest, '\n', &line);
	for (size_t i = 0; i < line.len; i++)
		if (!isgraph((unsigned char)line.at[i]))
			line.len = 0;
	if (line.len < ENGINE_TAG_MAX)
		snprintf(out, ENGINE_TAG_MAX, "%.*s", SPAN_FMT(line));
	buf_fini(&text);
}

/* In place of what was there, whole or not at all. */
static int put(const char *path, struct span text, struct err *err)
{
	char temporary[PATH_MAX], folder[PATH_MAX];
	auto_fd int fd = -1;
	auto_fd int dir = -1;

	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary))
		return err_set(err, ERR_INPUT, "the path is too long");
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_sys(err, "make %s", temporary);
	if (io_write_all(fd, text.at, text.len, err) < 0)
		return err_wrap(err, "%s", temporary);
	if (fsync(fd) < 0 || rename(temporary, path) < 0)
		return err_sys(err, "put %s in place", path);
	snprintf(folder, sizeof(folder), "%s", path);
	dir = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 || fsync(dir) < 0 ? err_sys(err, "keep %s", path) : 0;
}

static int ask(const struct args *args, const struct place *at, const char *tag, struct buf *ca,
	       struct engine_answer *ret, struct err *err)
{
	const struct conf_tcp tcp = {.host = at->host, .port = at->port};
	const struct conf_tls tls = {.ca = {.path = "", .text = buf_span(ca)}, .name = at->host};
	const struct conf_backend server = {
		.name = "bundle", .address = args->url, .socket = "", .tcp = &tcp, .tls = &tls};
	char more[ENGINE_TAG_MAX + 32];
	const struct engine_question q = {at->target, at->host, more, PACK_MAX, LIMIT_MS};

	snprintf(more, sizeof(more), "%s%s%s", *tag ? "If-None-Match: " : "", tag,
		 *tag ? "\r\n" : "");
	return engine_ask(&server, &q, ret, err);
}

static int take(const struct args *args, const char *key, const struct engine_answer *answer,
		struct err *err)
{
	const char *const keys[] = {key, NULL};
	struct arena *a = arena_create((size_t)4 << 20);
	struct pack *pack = a ? arena_take(a, sizeof(*pack)) : NULL;
	char path[PATH_MAX];
	int rc = -1;

	if (!pack)
		err_set(err, ERR_SYSTEM, "no memory");
	else if (pack_read(buf_span(&answer->body), keys, a, pack, err) == 0)
		rc = put(args->to, buf_span(&answer->body), err);
	if (rc == 0) {
		snprintf(path, sizeof(path), "%s.etag", args->to);
		rc = put(path, span_of(answer->etag), err);
	}
	if (rc == 0)
		printf("%s: %s of %s, signed by %.*s\n", args->to,
		       *pack->origin.name ? pack->origin.name : "rules", pack->origin.made,
		       SPAN_FMT(pack->signer));
	else
		err_wrap(err, "what %s hands out is not kept", args->url);
	arena_destroy(a);
	return rc;
}

/* EXIT_YES: there is a new one; EXIT_NO: there is none. */
static int fetch(const struct args *args, const char *key, struct err *err)
{
	struct engine_answer answer;
	struct place at;
	struct buf ca;
	char tag[ENGINE_TAG_MAX];
	int rc;

	if (read_url(args->url, &at, err) < 0 ||
	    io_read_file(args->ca ? args->ca : SYSTEM_CA, CA_MAX, &ca, err) < 0)
		return -1;
	read_tag(args->to, tag);
	rc = ask(args, &at, tag, &ca, &answer, err);
	buf_fini(&ca);
	if (rc < 0)
		return -1;
	if (answer.status == 304 && *tag)
		rc = EXIT_NO;
	else if (answer.status != 200)
		rc = err_set(err, ERR_UPSTREAM, "%s answers with status %d", args->url,
			     answer.status);
	else
		rc = take(args, key, &answer, err) < 0 ? -1 : EXIT_YES;
	buf_fini(&answer.body);
	return rc;
}

int run_bundle_fetch(const struct args *args)
{
	struct err err = {0};
	int rc;

	if (signed_init(&err) < 0)
		return command_failed(&err);
	if (!signed_key_is_valid(span_of(args->key))) {
		err_set(&err, ERR_INPUT,
			"--key: this is no public key that 'sallyport bundle key' prints");
		return command_failed(&err);
	}
	rc = fetch(args, args->key, &err);
	return rc < 0 ? command_failed(&err) : rc;
}
