/* A caller's wire with TLS is never there without end: not before, and not behind its connection.
 */
#include "proxy/worker_priv.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "proxy/metrics.h"
#include "tests/unit/check.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MS 1000
#define BODY_MS 500
#define TURNS   1000

/* --- in the place of the rest of a worker --- */

static struct conn the_conn;
static bool has_conn;

int connection_adopt(struct worker *w, const struct conf_listener *l, int fd, const char *identity,
		     struct tls_wire *wire, struct err *err)
{
	(void)identity;
	(void)err;
	the_conn = (struct conn){.worker = w, .listener = l, .fd = fd};
	has_conn = true;
	tls_wire_join(wire, &the_conn);
	return 0;
}

void connection_address(int fd, char out[CONNECTION_ADDRESS_MAX])
{
	(void)fd;
	snprintf(out, CONNECTION_ADDRESS_MAX, "127.0.0.1");
}

void connection_own_address(int fd, char out[CONNECTION_ADDRESS_MAX])
{
	connection_address(fd, out);
}

void metrics_add(struct metrics *m, enum metric which, uint64_t n)
{
	(void)m;
	(void)which;
	(void)n;
}

void trail_handshake(struct worker *w, const struct handshake *h)
{
	(void)w;
	(void)h;
}

/* --- the two ends --- */

static struct proxy_conf conf = {.limits = {.head_ms = HEAD_MS, .body_ms = BODY_MS}};
static struct conf_listener listener_conf = {.name = "tls"};
static struct worker worker;
static struct listener listener;
static char cert_pem[4096], key_pem[4096];

static int make_pair(void)
{
	size_t cert_len = sizeof(cert_pem) - 1, key_len = sizeof(key_pem) - 1;
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	unsigned char serial = 1;
	int rc;

	if (gnutls_x509_privkey_init(&key) < 0 || gnutls_x509_crt_init(&crt) < 0)
		return -1;
	rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	if (rc >= 0 && gnutls_x509_crt_set_key(crt, key) >= 0 &&
	    gnutls_x509_crt_set_version(crt, 3) >= 0 &&
	    gnutls_x509_crt_set_serial(crt, &serial, 1) >= 0 &&
	    gnutls_x509_crt_set_activation_time(crt, time(NULL) - 60) >= 0 &&
	    gnutls_x509_crt_set_expiration_time(crt, time(NULL) + 3600) >= 0 &&
	    gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0) >= 0 &&
	    gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_PEM, cert_pem, &cert_len) >= 0)
		rc = gnutls_x509_privkey_export(key, GNUTLS_X509_FMT_PEM, key_pem, &key_len);
	else
		rc = -1;
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(key);
	return rc;
}

static int set_up(void **state)
{
	struct tls_files files = {.optional = true};
	enum tls_file wrong;
	struct err err = {0};

	(void)state;
	if (make_pair() < 0)
		return -1;
	files.text[TLS_CERT] = span_of(cert_pem);
	files.text[TLS_KEY] = span_of(key_pem);
	worker = (struct worker){.conf = &conf};
	listener = (struct listener){.worker = &worker,
				     .conf = &listener_conf,
				     .tls = tls_server_open(&files, &wrong, &err)};
	return listener.tls && loop_open(&worker.loop, &err) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tls_wire_close_all(&worker);
	tls_server_close(listener.tls);
	loop_close(&worker.loop);
	return 0;
}

static int accept_one(void)
{
	struct err err = {0};
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	assert_int_equal(tls_wire_accept(&listener, ends[0], &err), 0);
	return ends[1];
}

static void shake_hands(gnutls_session_t session)
{
	int rc = GNUTLS_E_AGAIN;

	has_conn = false;
	for (int i = 0; i < TURNS && (rc < 0 || !has_conn); i++) {
		if (rc < 0)
			rc = gnutls_handshake(session);
		loop_turn(&worker.loop, 1);
	}
	CHECK_INT("hands were shaken", 0, rc);
	CHECK_INT("it is a connection", 1, has_conn);
}

/* Writes, as the HTTP library does, until nobody takes more. */
static void fill(int fd)
{
	static const char bytes[4096];

	for (int idle = 0; idle < 3; idle++) {
		while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
			idle = 0;
		loop_turn(&worker.loop, 1);
	}
}

static void tick_after(uint64_t ms)
{
	worker.loop.now_ms += ms;
	tls_wire_tick(&worker);
}

static void a_handshake_has_its_time(void **state)
{
	int fd = accept_one();

	(void)state;
	tick_after(HEAD_MS);
	CHECK_INT("it has all of it", 1, worker.wires != NULL);
	tick_after(1);
	CHECK_INT("and no more", 1, worker.wires == NULL);
	close(fd);
}

static void the_rest_has_its_time(void **state)
{
	gnutls_certificate_credentials_t nothing;
	gnutls_session_t session;
	int fd = accept_one();

	(void)state;
	assert_int_equal(gnutls_certificate_allocate_credentials(&nothing), 0);
	assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL),
			 0);
	assert_int_equal(gnutls_set_default_priority(session), 0);
	assert_int_equal(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, nothing), 0);
	gnutls_transport_set_int(session, fd);
	shake_hands(session);
	fill(the_conn.fd);
	tick_after(UINT64_C(1000) * BODY_MS);
	CHECK_INT("a connection that is there is the worker's affair", 1, worker.wires != NULL);
	loop_turn(&worker.loop, 0); /* the time is right again */
	close(the_conn.fd);
	tls_wire_leave(the_conn.wire);
	loop_turn(&worker.loop, 1);
	CHECK_INT("the caller may still take what is on its way", 1, worker.wires != NULL);
	tick_after(UINT64_C(5) * BODY_MS);
	CHECK_INT("for a while", 1, worker.wires != NULL);
	tick_after(UINT64_C(5) * BODY_MS + 1);
	CHECK_INT("and not for ever", 1, worker.wires == NULL);
	gnutls_deinit(session);
	gnutls_certificate_free_credentials(nothing);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_handshake_has_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_rest_has_its_time, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
