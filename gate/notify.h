/*
 * notify.h - the service manager's protocol (sd_notify): one datagram, no library.
 */
#ifndef GATE_NOTIFY_H
#define GATE_NOTIFY_H

/* "READY=1", "STOPPING=1"; does nothing without a manager (NOTIFY_SOCKET). */
void notify_manager(const char *state);

#endif
