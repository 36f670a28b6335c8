/* doctor_tls.c - certificates of listeners: do they fit, how long are they good, how strong are
 * they? */
#include "gate/doctor.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "proxy/tls_server.h"

#include <string.h>
#include <sys/stat.h>

#define DAY_S   86400
#define SOON    30 /* days */
#define PEM_MAX ((size_t)256 << 10)

static int64_t now_s(void)
{
	return (int64_t)(clock_unix_ns() / 1000000000);
}

static void check_dates(struct findings *f, const char *listener, enum tls_file which,
			const struct tls_dates *d)
{
	static const char why[] = "Nobody who looks at it is connected then.";
	static const char mend[] =
		"Renew it, put the new one in its place, and say `sallyport reload`.";
	int64_t left = d->until - now_s();
	const char *name = tls_file_name(which);

	if (d->from > now_s())
		finding_add(f, FINDING_WEAK, "Nobody who looks at it is connected until then.",
			    "Look at this host's clock.", "listener '%s': tls.%s is not valid yet",
			    listener, name);
	else if (left < 0)
		finding_add(f, FINDING_WEAK, why, mend, "listener '%s': tls.%s has expired",
			    listener, name);
	else if (left < SOON * DAY_S)
		finding_add(f, FINDING_WEAK, why, mend,
			    "listener '%s': tls.%s expires in %lld days", listener, name,
			    (long long)(left / DAY_S));
	else
		finding_add(f, FINDING_FINE, "", "", "listener '%s': tls.%s is valid for %lld days",
			    listener, name, (long long)(left / DAY_S));
}

static void check_strength(struct findings *f, const char *listener, enum tls_file which,
			   const struct tls_dates *d)
{
	if (d->weak_key)
		finding_add(f, FINDING_WEAK,
			    "Whoever can compute the key can be who it belongs to.",
			    "Take an EC key of 256 bits, or an RSA key of 3072.",
			    "listener '%s': tls.%s has a weak key (%u bits)", listener,
			    tls_file_name(which), d->bits);
	if (d->weak_signature)
		finding_add(f, FINDING_WEAK,
			    "Such signatures can be forged, and clients refuse them.",
			    "Have it issued anew, signed with SHA-256.",
			    "listener '%s': tls.%s has a weak signature", listener,
			    tls_file_name(which));
}

static void check_certificate(struct findings *f, const char *listener, enum tls_file which,
			      struct span pem)
{
	struct tls_dates dates;

	if (tls_dates_read(pem, &dates) < 0)
		return; /* whether it fits is said elsewhere */
	check_dates(f, listener, which, &dates);
	check_strength(f, listener, which, &dates);
}

static void check_crl(struct findings *f, const char *listener, struct span pem)
{
	int64_t until;

	if (tls_crl_until(pem, &until) < 0)
		return;
	if (until < now_s())
		finding_add(f, FINDING_WEAK, "No client certificate is accepted.",
			    "Fetch a new list, and say `sallyport reload`.",
			    "listener '%s': tls.crl is older than it says it may be", listener);
}

static void check_key_file(struct findings *f, const char *listener, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	if (st.st_mode & (S_IRWXO | S_IWGRP))
		finding_add(
			f, FINDING_WEAK, "The gate does not start, and a reload fails.",
			"chmod 0600 it.",
			"listener '%s': the key %s can be read or changed by others (mode %04o)",
			listener, path, st.st_mode & 07777);
	else if (st.st_mode & S_IRGRP)
		finding_add(f, FINDING_NOTE, "Whoever is in it can be the gate.",
			    "chmod 0600 it, unless something else in that group needs it.",
			    "listener '%s': the key %s can be read by the group %u", listener, path,
			    st.st_gid);
}

/* What can be read; false if there is something that cannot. */
static bool read_files(struct findings *f, const struct conf_listener *l, struct buf texts[])
{
	bool all = true;

	for (enum tls_file i = 0; i < TLS_FILE_COUNT; i++) {
		const char *path = l->tls->files[i].path;
		struct err err = {0};

		buf_init(&texts[i], PEM_MAX);
		if (!path || io_read_file(path, PEM_MAX, &texts[i], &err) == 0)
			continue;
		all = false;
		finding_add(f, FINDING_NOTE, "What it says could not be looked at.",
			    "Run this as the user that starts the gate.",
			    "listener '%s': tls.%s: %s", l->name, tls_file_name(i), err.msg);
	}
	return all;
}

static void check_fit(struct findings *f, const struct conf_listener *l, const struct buf texts[])
{
	struct tls_files files = {.optional = l->tls->optional};
	enum tls_file wrong;
	struct err err = {0};
	struct tls_server *server;

	for (enum tls_file i = 0; i < TLS_FILE_COUNT; i++)
		files.text[i] = buf_span(&texts[i]);
	server = tls_server_open(&files, &wrong, &err);
	if (!server)
		finding_add(f, FINDING_WEAK, "The gate does not start, and a reload fails.", "",
			    "listener '%s': tls.%s: %s", l->name, tls_file_name(wrong), err.msg);
	tls_server_close(server);
}

static void check_listener(struct findings *f, const struct conf_listener *l)
{
	struct buf texts[TLS_FILE_COUNT];

	check_key_file(f, l->name, l->tls->files[TLS_KEY].path);
	if (read_files(f, l, texts))
		check_fit(f, l, texts);
	check_certificate(f, l->name, TLS_CERT, buf_span(&texts[TLS_CERT]));
	if (l->tls->files[TLS_CA].path)
		check_certificate(f, l->name, TLS_CA, buf_span(&texts[TLS_CA]));
	if (l->tls->files[TLS_CRL].path)
		check_crl(f, l->name, buf_span(&texts[TLS_CRL]));
	for (enum tls_file i = 0; i < TLS_FILE_COUNT; i++)
		buf_fini(&texts[i]);
}

void doctor_tls(struct findings *f)
{
	for (size_t i = 0; i < f->config->proxy.listener_count; i++)
		if (f->config->listeners[i].tls)
			check_listener(f, &f->config->listeners[i]);
}
