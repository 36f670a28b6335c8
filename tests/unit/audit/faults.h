/*
 * faults.h - system calls that fail, stop half-way, or kill the process.
 *
 * The program that links faults.c is linked with --wrap for each of the calls
 * (see meson.build), so that the log meets them as it would meet a disk's.
 */
#ifndef TESTS_UNIT_AUDIT_FAULTS_H
#define TESTS_UNIT_AUDIT_FAULTS_H

#include <stdbool.h>
#include <sys/types.h>

enum fault_call {
	FAULT_PWRITEV = 1,
	FAULT_FDATASYNC = 2,
	FAULT_FSYNC = 4,
	FAULT_RENAME = 8,
	FAULT_FALLOCATE = 16,
	FAULT_FTRUNCATE = 32,
	FAULT_ANY = 63
};

enum fault_effect {
	FAULT_NOTHING = 0,
	FAULT_ERROR,   /* returns -1 with the error */
	FAULT_DIE,     /* ends the process before the call */
	FAULT_HALF_DIE /* a write writes half; then the process ends */
};

struct fault {
	int calls;     /* which calls are meant: enum fault_call, or-ed */
	int after;     /* so many of them go well first */
	bool for_ever; /* all later ones too; else only one */
	enum fault_effect effect;
	int error;
};

/* From now on.  Also sets the count of calls to 0. */
void faults_set(struct fault f);

/* Calls made since faults_set(), the failed ones included. */
int faults_calls(enum fault_call call);

/* Writes transfer at most so many bytes; 0: no limit.  Every second one says EINTR first. */
void faults_short_writes(size_t bytes);

/* Called after each fdatasync() or fsync() that went well. */
extern void (*faults_on_sync)(int fd);

#endif
