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
#include "gate/config_priv.h"
#include "gate/pack.h"
#include "proxy/engine_get.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"
#define LIMIT_MS  60000
#define CA_MAX    ((size_t)4 << 20)
#define HTTPS     "https://"
#define HOST_MAX  300

struct place {
	struct conf_tcp tcp;
	char authority[HOST_MAX + 1]; /* as the URL has it */
	const char *target;
};

/* The port that is not said is 443. */
static int read_authority(struct span s, struct arena *a, struct place *ret)
{
	bool has_port = memchr(s.at, ':', s.len) && s.at[s.len - 1] != ']';
	char address[HOST_MAX + 16];

	if (s.len > HOST_MAX)
		return -1;
	snprintf(ret->authority, sizeof(ret->authority), "%.*s", SPAN_FMT(s));
	snprintf(address, sizeof(address), "tcp://%s%s", ret->authority, has_port ? "" : ":443");
	return config_address_tcp(address, a, &ret->tcp);
}

/* https://HOST[:PORT]/TARGET, with nothing that a head could be split with. */
static int read_url(const char *url, struct arena *a, struct place *ret, struct err *err)
{
	struct span rest = span_of(url);

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
	if (!rest.len || read_authority(rest, a, ret) < 0)
		return err_set(err, ERR_INPUT,
			       "'%.100s' names no host, or no port between 1 and 65535", url);
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

static int ask(const struct args *args, const struct place *at, const char *tag, struct buf *ca,
	       struct engine_answer *ret, struct err *err)
{
	const struct conf_tls tls = {.ca = {.path = "", .text = buf_span(ca)},
				     .name = at->tcp.host};
	const struct conf_backend server = {
		.name = "bundle", .address = args->url, .socket = "", .tcp = &at->tcp, .tls = &tls};
	char more[ENGINE_TAG_MAX + 32];
	const struct engine_question q = {at->target, at->authority, more, PACK_MAX, LIMIT_MS};

	snprintf(more, sizeof(more), "%s%s%s", *tag ? "If-None-Match: " : "", tag,
		 *tag ? "\r\n" : "");
	return engine_ask(&server, &q, ret, err);
}

/* A server without tags, or with new ones for the same, hands it out each time. */
static bool is_kept(const char *file, struct span text)
{
	struct err unheard = {0};
	struct buf kept;
	bool same;

	if (access(file, R_OK) < 0 || io_read_file(file, PACK_MAX, &kept, &unheard) < 0)
		return false;
	same = span_eq(buf_span(&kept), text);
	buf_fini(&kept);
	return same;
}

/* Without its tag what is kept is asked for again, no more: the tag goes first and comes last. */
static int keep(const char *file, const struct engine_answer *answer, bool new, struct err *err)
{
	char path[PATH_MAX];
	struct err lost = {0};

	if (snprintf(path, sizeof(path), "%s.etag", file) >= (int)sizeof(path))
		return err_set(err, ERR_INPUT, "the path is too long");
	unlink(path);
	if (new &&io_replace(AT_FDCWD, file, 0644, buf_span(&answer->body), err) < 0)
		return -1;
	if (*answer->etag && io_replace(AT_FDCWD, path, 0644, span_of(answer->etag), &lost) < 0)
		fprintf(stderr, "%s is kept, but not its tag, so it is fetched again: %s\n", file,
			lost.msg);
	return 0;
}

/* EXIT_YES: there is a new one; EXIT_NO: it is what is kept already. */
static int take(const struct args *args, const char *key, const struct engine_answer *answer,
		struct err *err)
{
	const char *const keys[] = {key, NULL};
	struct arena *a = arena_create((size_t)4 << 20);
	struct pack *pack = a ? arena_take(a, sizeof(*pack)) : NULL;
	bool new = !is_kept(args->to, buf_span(&answer->body));
	int rc = -1;

	if (!pack)
		err_set(err, ERR_SYSTEM, "no memory");
	else if (pack_read(buf_span(&answer->body), keys, a, pack, err) == 0)
		rc = keep(args->to, answer, new, err);
	if (rc < 0)
		err_wrap(err, "what %s hands out is not kept", args->url);
	else if (new)
		printf("%s: %s of %s, signed by %.*s\n", args->to,
		       *pack->origin.name ? pack->origin.name : "rules", pack->origin.made,
		       SPAN_FMT(pack->signer));
	arena_destroy(a);
	return rc < 0 ? -1 : new ? EXIT_YES : EXIT_NO;
}

/* EXIT_YES: there is a new one; EXIT_NO: there is none. */
static int fetch_from(const struct args *args, const struct place *at, struct err *err)
{
	struct engine_answer answer;
	struct buf ca;
	char tag[ENGINE_TAG_MAX];
	int rc;

	if (io_read_file(args->ca ? args->ca : SYSTEM_CA, CA_MAX, &ca, err) < 0)
		return -1;
	read_tag(args->to, tag);
	rc = ask(args, at, tag, &ca, &answer, err);
	buf_fini(&ca);
	if (rc < 0)
		return -1;
	if (answer.status == 304 && *tag)
		rc = EXIT_NO;
	else if (answer.status != 200)
		rc = err_set(err, ERR_UPSTREAM, "%s answers with status %d", args->url,
			     answer.status);
	else
		rc = take(args, args->key, &answer, err);
	buf_fini(&answer.body);
	return rc;
}

static int fetch(const struct args *args, struct err *err)
{
	struct arena *a = arena_create(4096);
	struct place at = {0};
	int rc;

	if (!a)
		return err_set(err, ERR_SYSTEM, "no memory");
	rc = read_url(args->url, a, &at, err);
	if (rc == 0)
		rc = fetch_from(args, &at, err);
	arena_destroy(a);
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
	rc = fetch(args, &err);
	return rc < 0 ? command_failed(&err) : rc;
}
