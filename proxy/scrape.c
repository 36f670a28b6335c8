#include "proxy/scrape.h"

#include "proxy/metrics.h"

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
}

static void write_state(struct page *p, bool good, const char *text)
{
	p->status = good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
	buf_printf(&p->body, "%s\n", text);
}

static void write_page(struct worker *w, const char *target, struct page *p)
{
	bool up = audit_client_up(w->audit);

	if (!strcmp(target, "/metrics")) {
		write_metrics(w, p);
	} else if (!strcmp(target, "/health")) {
		write_state(p, true, "alive");
	} else if (!strcmp(target, "/ready")) {
		write_state(p, up && !w->stopping,
			    up ? "ready"
			       : "the log takes no records: what changes state is refused");
	} else {
		p->status = MHD_HTTP_NOT_FOUND;
		buf_puts(&p->body, "here are /metrics, /health and /ready\n");
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
