/*
 * scrape.h - the small HTTP server of a listener with `metrics = true`.
 *
 *	GET /metrics   what was counted, for Prometheus
 *	GET /health    200 as long as a worker answers
 *	GET /ready     200 if requests are served and the log takes records; else 503
 *
 * Whoever can open the socket may ask; nothing can be changed there, nothing is
 * forwarded, and nothing of it is on record.
 */
#ifndef PROXY_SCRAPE_H
#define PROXY_SCRAPE_H

#include "proxy/worker_priv.h"

/* Answers; to be called from MHD's request handler. */
enum MHD_Result scrape_answer(struct worker *w, struct MHD_Connection *mhd, const char *method,
			      const char *target);

#endif
