/* watched_log.h - the table for watchers, filled from the log when the gate is started. */
#ifndef GATE_WATCHED_LOG_H
#define GATE_WATCHED_LOG_H

#include "proxy/conf.h"
#include "proxy/watched.h"

/* What cannot be read is as if it had never been: then engines are watched from now on. */
void watched_restore(struct watched *w, const struct proxy_conf *conf, const char *dir);

#endif
