/*
 * notify.h - the service manager's protocol (sd_notify): one datagram, no library.
 */
#ifndef GATE_NOTIFY_H
#define GATE_NOTIFY_H

/* "READY=1", "STOPPING=1"; does nothing without a manager (NOTIFY_SOCKET). */
void notify_manager(const char *state);

/* The same with a descriptor, of which the manager gets a copy; -1: none. */
void notify_manager_fd(const char *state, int kept);

#endif
