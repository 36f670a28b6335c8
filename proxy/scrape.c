#include "proxy/scrape.h"

#include "proxy/approvals.h"
#include "proxy/engines.h"
#include "proxy/metrics.h"
#include "proxy/quotas.h"

#include <string.h>

struct page {
	int status;
	const char *type;
	struct buf body;
};

static void write_metrics(struct worker *w, struct page *p)
{
	p->type = "text/plain; version=0.0.4; charset=utf-8";
	if (w->conf->metrics)
		metrics_write(w->conf->metrics, w->conf->generation, audit_client_up(w->audit),
			      &p->body);
	metrics_write_audit(w->conf->audit_state, &p->body);
	engines_write(w->conf->engines, w->conf, &p->body);
	if (w->conf->quotas) {
		quotas_write(w->conf->quotas, &p->body);
		quota_uses_write(quotas_uses(w->conf->quotas), w->conf, &p->body);
	}
	if (w->conf->approvals)
		approvals_write(w->conf->approvals, w->loop.now_ms, &p->body);
}

/* Says what is wrong, if anything is. */
static bool say_log(const struct worker *w, struct buf *out)
{
	bool up = audit_client_up(w->audit);

	if (!up)
		buf_puts(out, "the log takes no records: what changes state is refused\n");
	return up;
}

static bool say_engine(const struct worker *w, size_t backend, struct buf *out)
{
	struct engine_look look;

	engines_look(w->conf->engines, backend, &look);
	if (look.state != ENGINE_UP)
		buf_printf(out, "backend %s: %s\n", w->conf->backends[backend].name,
			   engine_state_text(look.state));
	return look.state == ENGINE_UP;
}

/* only: the name of one backend, or NULL for all. */
static void write_ready(const struct worker *w, const char *only, struct page *p)
{
	bool good = say_log(w, &p->body), known = !only;

	for (size_t i = 0; i < w->conf->backend_count; i++) {
		if (only && strcmp(only, w->conf->backends[i].name) != 0)
			continue;
		known = true;
		good = say_engine(w, i, &p->body) && good;
	}
	if (w->stopping)
		buf_puts(&p->body, "the gate stops\n");
	p->status = !known                 ? MHD_HTTP_NOT_FOUND
		    : good && !w->stopping ? MHD_HTTP_OK
					   : MHD_HTTP_SERVICE_UNAVAILABLE;
	if (!known) {
		buf_clear(&p->body);
		buf_puts(&p->body, "no backend has this name\n");
	} else if (p->status == MHD_HTTP_OK) {
		buf_puts(&p->body, "ready\n");
	}
}

static void write_page(struct worker *w, const char *target, struct page *p)
{
	if (!strcmp(target, "/metrics")) {
		write_metrics(w, p);
	} else if (!strcmp(target, "/health")) {
		buf_puts(&p->body, "alive\n");
	} else if (!strcmp(target, "/ready")) {
		write_ready(w, NULL, p);
	} else if (!strncmp(target, "/ready/", 7)) {
		write_ready(w, target + 7, p);
	} else {
		p->status = MHD_HTTP_NOT_FOUND;
		buf_puts(&p->body, "here are /metrics, /health, /ready and /ready/BACKEND\n");
	}
}

enum MHD_Result scrape_answer(struct worker *w, struct MHD_Connection *mhd, const char *method,
			      const char *target)
{
	struct page p = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
	struct MHD_Response *r;
	enum MHD_Result ok;

	buf_init(&p.body, METRICS_TEXT_MAX);
	if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD)) {
		write_page(w, target, &p);
	} else {
		p.status = MHD_HTTP_METHOD_NOT_ALLOWED;
		buf_puts(&p.body, "only GET is known here\n");
	}
	r = MHD_create_response_from_buffer(
		buf_len(&p.body), (void *)(uintptr_t)buf_span(&p.body).at, MHD_RESPMEM_MUST_COPY);
	buf_fini(&p.body);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, "Content-Type", p.type);
	ok = MHD_queue_response(mhd, (unsigned)p.status, r);
	MHD_destroy_response(r);
	return ok;
}
