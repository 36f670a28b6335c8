/*
 * export_priv.h - what a record is, for all forms of export; and their writers.
 */
#ifndef AUDIT_EXPORT_PRIV_H
#define AUDIT_EXPORT_PRIV_H

#include "audit/export.h"

/* What a type of record is: export_types.def. */
struct export_type {
	int ocsf_class, ocsf_activity;
	const char *ecs_category, *ecs_type, *cef_category;
	const char *name; /* for people */
};

const struct export_type *export_type_of(const struct fields *f);

/* What an operation does, by the last part of its name: export_operations.def. */
struct export_operation {
	const char *verb;
	int ocsf_activity; /* of API Activity */
	const char *ecs_type;
};

const struct export_operation *export_operation_of(const struct fields *f);

enum export_severity { SEVERITY_USUAL = 0, SEVERITY_DENIED, SEVERITY_ALARM };
enum export_severity export_severity_of(const struct fields *f);

/* A stable code for a record: its type, and where there is one its verdict. */
const char *export_code(const struct fields *f, char room[64]);

/* "LOG/SEQ" */
const char *export_place(const struct fields *f, char room[192]);

/* What stands at a path ("actor.auth.uid", "res.0.name"), or NULL. */
const struct jv *export_at(const struct fields *f, const char *path);

void export_ocsf(const struct fields *f, struct arena *a, struct buf *out);
void export_ecs(const struct fields *f, struct arena *a, struct buf *out);
void export_cef(const struct fields *f, struct buf *out);

#endif
