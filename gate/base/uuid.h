/*
 * uuid.h - UUIDv7 (RFC 9562): ids that sort by time.
 */
#ifndef GATE_BASE_UUID_H
#define GATE_BASE_UUID_H

#define UUID_TEXT_LEN 36

/*
 * Writes a new id with its NUL.  Random bits come from getrandom(); aborts if
 * the kernel has none, since a repeated id would join two records.
 */
void uuid_make(char out[UUID_TEXT_LEN + 1]);

#endif
