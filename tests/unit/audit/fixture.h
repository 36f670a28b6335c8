/* fixture.h - a log in a fresh directory, and what tests do to it. */
#ifndef TESTS_UNIT_AUDIT_FIXTURE_H
#define TESTS_UNIT_AUDIT_FIXTURE_H

#include "audit/log_priv.h"
#include "audit/record.h"
#include "audit/verify.h"

#include <stddef.h>
#include <stdint.h>

#define FIXTURE_PATH 256

/* Makes an empty directory below $TMPDIR or /tmp; fixture_remove() deletes it with its files. */
void fixture_dir(char out[FIXTURE_PATH]);
void fixture_remove(const char *dir);

/* "dir/name" */
const char *fixture_path(const char *dir, const char *name);

/* A file's bytes (malloc), and back again. */
char *fixture_read(const char *path, size_t *ret_len);
void fixture_write(const char *path, const char *bytes, size_t len);

/* An id that is always the same for the same number. */
const char *fixture_id(unsigned n);

/* A decision with verdict, or the outcome of one. */
struct record fixture_decision(unsigned n, const char *verdict);
struct record fixture_outcome(unsigned n);
struct record fixture_read_record(unsigned n);

/* Opens dir's log with this segment size; fails the test if that is refused. */
struct audit_log *fixture_open(const char *dir, uint64_t segment_bytes, struct open_set *open,
			       struct audit_log_found *found);

/* Adds and commits one record. */
struct audit_mark fixture_append(struct audit_log *l, const struct record *r);

/* How many bytes of a segment file are in use (up to the last newline). */
size_t fixture_used(const char *path);

#endif
