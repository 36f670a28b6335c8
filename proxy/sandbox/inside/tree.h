/*
 * tree.h - all processes below this one, wherever they went.
 *
 * This process is their subreaper: whoever is orphaned becomes its child, so that nothing of the
 * tree is left exactly when it has no child any more.  Needs /proc.
 *
 * Where the kernel has no subreapers (gVisor before 2023) orphans go to process 1, which starts
 * nothing itself: its children that began no earlier than this process are taken for ours when all
 * are to be killed.  Of two commands at the same time the one that is killed then takes along what
 * the other has orphaned.
 */
#ifndef PROXY_SANDBOX_INSIDE_TREE_H
#define PROXY_SANDBOX_INSIDE_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* Becomes the subreaper.  0, or -1 with errno: this tree could not be ended for certain. */
int tree_init(void);

/* Sends a signal to each process below this one, as far as one look at /proc shows them. */
void tree_signal(int number);

/*
 * Takes whoever has ended; nothing waits.  True if main_pid was among them, then *status is its
 * status.  *none: there is no child any more.
 */
bool tree_reap(pid_t main_pid, int *status, bool *none);

/* Kills until nothing is left.  *found and *status as of tree_reap().  0, or -1: something will not
 * die. */
int tree_kill(pid_t main_pid, bool *found, int *status);

#endif
