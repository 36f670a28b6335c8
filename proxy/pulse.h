/*
 * pulse.h - a module of the watcher: are the engines well?
 *
 * An engine that is wedged may still take connections, answer pings and keep its stream
 * of events open; so each is asked for something that it has to look up, every PULSE_MS,
 * on a connection of the watcher's own.  What comes of it is written into engines.h.
 */
#ifndef PROXY_PULSE_H
#define PROXY_PULSE_H

#include "proxy/watcher.h"

#define PULSE_MS        2000
#define PULSE_ANSWER_MS 5000 /* or limits.engine_ms, if that is less */

extern const struct watcher_module pulse_module;

#endif
