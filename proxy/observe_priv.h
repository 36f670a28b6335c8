/* observe_priv.h - a module of the watcher: what happens in an engine, held against the decisions.
 */
#ifndef PROXY_OBSERVE_PRIV_H
#define PROXY_OBSERVE_PRIV_H

#include "proxy/watcher.h"

extern const struct watcher_module observe_module;

#endif
