/*
 * admin_ask.h - one question to the running gate over its admin socket.
 */
#ifndef GATE_ADMIN_ASK_H
#define GATE_ADMIN_ASK_H

#include "gate/admin.h"
#include "gate/base/jv.h"
#include "gate/command.h"

/* args: an object, or NULL.  *ret: the whole answer.  -1: nobody answered as the gate does. */
int admin_ask_gate(const char *socket, enum admin_verb verb, const struct jv *args, struct arena *a,
		   struct jv *ret, struct err *err);

/* --socket, or what the configuration says; it lives in the arena.  NULL: it does not load. */
const char *admin_socket_of(const struct args *args, struct arena *a, struct err *err);

/* "not_permitted: ..." of an answer that is no. */
void admin_print_refusal(const char *verb, const struct jv *answer);

/* On a line of its own, at once. */
void admin_print_json(const struct jv *v);

struct admin_question {
	enum admin_verb verb;
	/* Puts the arguments into the object; NULL: there are none. */
	int (*fill)(const struct args *args, struct arena *a, struct jv *to, struct err *err);
	const char *key; /* what --json shows of the answer; NULL: all of it */
	void (*print)(const struct jv *answer);
};

/* Asks the gate that args name, and shows what came; the exit status. */
int admin_command(const struct args *args, const struct admin_question *q);

#endif
