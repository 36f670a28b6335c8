/*
 * quota_status.h - what owners have of their quotas, for status and doctor.
 */
#ifndef GATE_QUOTA_STATUS_H
#define GATE_QUOTA_STATUS_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/jv.h"
#include "proxy/quota_use.h"

/* Into the tree of the status: quotas, the fullest first, and quotas_more. */
void quota_status_add(const struct quota_uses *u, const struct proxy_conf *conf, struct arena *a,
		      struct jv *tree);

/* One of them as a sentence: "alice under main on engine: containers 2 of 5, memory 1.5 of 6 GiB".
 */
void quota_status_say(const struct jv *one, int64_t now, struct buf *out);

#endif
