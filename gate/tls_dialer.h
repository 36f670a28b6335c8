/* tls_dialer.h - TLS for audit/, which does not know of it. */
#ifndef GATE_TLS_DIALER_H
#define GATE_TLS_DIALER_H

#include "audit/sink.h"

extern const struct sink_dialer tls_dialer;

#endif
