/* sandbox_find.c - where the sandbox API is, who asks, and what its paths are called. */
#include "gate/sandbox_client.h"

#include "gate/base/io.h"
#include "gate/serve.h"

#include <string.h>

#define ENCODE_MAX 12288

static int read_token(const char *path, struct api *ret, struct err *err)
{
	struct buf text;
	struct span s, line;
	int rc = 0;

	if (io_read_file(path, sizeof(ret->token), &text, err) < 0)
		return -1;
	s = buf_span(&text);
	span_cut(&s, '\n', &line);
	if (!line.len || line.len >= sizeof(ret->token) || memchr(line.at, '\r', line.len) ||
	    memchr(line.at, '\0', line.len))
		rc = err_set(err, ERR_INPUT, "%s: its first line is no token", path);
	else
		memcpy(ret->token, line.at, line.len);
	buf_fini(&text);
	return rc;
}

static const struct conf_listener *of_config(const struct proxy_conf *p, const char *name)
{
	for (size_t i = 0; i < p->listener_count; i++) {
		const struct conf_listener *l = &p->listeners[i];

		if (l->sandbox_count && !conf_is_tcp(l) && (!name || strcmp(l->name, name) == 0))
			return l;
	}
	return NULL;
}

static int take_socket(const char *path, struct api *ret, struct err *err)
{
	if (strlen(path) >= sizeof(ret->socket))
		return err_set(err, ERR_INPUT, "%s: the path is too long", path);
	memcpy(ret->socket, path, strlen(path) + 1);
	return 0;
}

static int look_up(const struct args *args, struct api *ret, struct err *err)
{
	const struct conf_listener *l;
	struct loaded loaded;
	int rc;

	if (load(args->config, &loaded, err) < 0)
		return -1;
	l = of_config(&loaded.config.proxy, args->listener);
	rc = l ? take_socket(l->socket, ret, err)
	       : err_set(err, ERR_INPUT, "%s has no %s%s%s with a socket and `sandboxes`",
			 args->config, args->listener ? "listener '" : "listener",
			 args->listener ? args->listener : "", args->listener ? "'" : "");
	unload(&loaded);
	return rc;
}

int api_find(const struct args *args, struct api *ret, struct err *err)
{
	*ret = (struct api){0};
	if (args->token_file && read_token(args->token_file, ret, err) < 0)
		return -1;
	if (args->socket)
		return take_socket(args->socket, ret, err);
	if (args->config)
		return look_up(args, ret, err);
	return err_set(err, ERR_INPUT,
		       "say where the sandbox API is: --socket PATH, or --config FILE");
}

/* As in the path of a URL; a "/" stays. */
static void encode(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-._~/", c))
			buf_put(out, text, 1);
		else
			buf_printf(out, "%%%02X", c);
	}
}

int api_target(struct arena *a, const char *id, const char *behind, const char *path,
	       const char **ret, struct err *err)
{
	struct buf out;
	int rc = 0;

	if (!*id || strchr(id, '/'))
		return err_set(err, ERR_INPUT, "'%s' is no id of a sandbox", id);
	buf_init(&out, ENCODE_MAX);
	buf_puts(&out, "/v1/sandboxes/");
	encode(&out, id);
	buf_puts(&out, behind); /* of the verb itself */
	if (path)
		encode(&out, path);
	if (!buf_spent(&out))
		*ret = arena_strndup(a, buf_span(&out).at, buf_len(&out));
	if (buf_spent(&out) || !*ret)
		rc = err_set(err, ERR_INPUT, "the path is too long");
	buf_fini(&out);
	return rc;
}
