/*
 * export.h - records in the forms that collectors of events read: OCSF 1.8, the
 * Elastic Common Schema, and CEF.
 *
 * Each record becomes one line.  An export is a view; the log is the evidence: each
 * line names the record's log, number and hash.  What the forms have no place for is
 * left out or stands under names of ours (`unmapped`, `sallyport.*`).  The tables are
 * export_types.def (what a type of record is), export_operations.def (what an
 * operation is), export_ecs.def and export_cef.def (which member goes where).
 */
#ifndef AUDIT_EXPORT_H
#define AUDIT_EXPORT_H

#include "audit/fields.h"

#include <stdbool.h>

enum export_format { EXPORT_NONE = 0, EXPORT_OCSF, EXPORT_ECS, EXPORT_CEF };

enum export_format export_format_find(const char *name);

/* Appends a line without its newline.  a: where it is made. */
void export_record(enum export_format format, const struct fields *f, struct arena *a,
		   struct buf *out);

struct export_options {
	enum export_format format;
	uint64_t since_ns, until_ns; /* 0: any */
	bool has_after;
	uint64_t after; /* records behind this number */
};

struct export_result {
	uint64_t count;  /* events that were written */
	uint64_t missed; /* records behind `after` that were removed from the log before */
};

/*
 * Writes the records of a log to a descriptor, in their order.  A number behind the
 * log's end is none of this log: ERR_INPUT.
 */
int export_log(const char *dir, const struct export_options *options, int fd,
	       struct export_result *ret, struct err *err);

#endif
