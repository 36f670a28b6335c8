/*
 * emergency_state.h - the file that keeps over a restart of the gate what is above the rules.
 *
 *	{"version":1,"quarantines":[
 *	{"owner":"agent-7","ticket":"INC-12","since":1790000000,"kill":true}
 *	],"modes":[
 *	{"profile":"ci","mode":"warn","ticket":"INC-13","since":1790000000,"until":1790003600}]}
 *
 * It stands beside that of listeners made at run time, and belongs to the admin process.
 */
#ifndef GATE_EMERGENCY_STATE_H
#define GATE_EMERGENCY_STATE_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"
#include "proxy/emergency.h"

#define EMERGENCY_FILE "emergency.json"

/* *ret is empty on failure; ERR_CONFIG says what is wrong. */
int emergency_state_parse(struct span text, struct emergency_view *ret, struct err *err);
void emergency_state_text(const struct emergency_view *view, struct buf *out);

/* The file in that folder; none is an empty view. */
int emergency_state_read(int folder, struct emergency_view *ret, struct err *err);
int emergency_state_write(int folder, const struct emergency_view *view, struct err *err);

#endif
