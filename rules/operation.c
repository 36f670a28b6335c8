#include "rules/operation.h"

#include <string.h>

static const struct {
	const char *name;
	enum op_class cls;
	const char *group, *doc;
	bool by_name;
} operations[] = {
	{"unknown", CLASS_NONE, "", "What the gate does not know.", true},
#define OPERATION(id, name, cls, group, doc)       {name, CLASS_##cls, group, doc, false},
#define NAMED_OPERATION(id, name, cls, group, doc) {name, CLASS_##cls, group, doc, true},
#include "rules/operations.def"
#undef OPERATION
};
_Static_assert(sizeof(operations) / sizeof(*operations) == OP_COUNT, "a row each");

static const struct {
	const char *name;
	int status;
	const char *what, *hint;
} reasons[] = {
	{"none", 500, "nothing is wrong", ""},
#define REASON(id, status, what, hint) {#id, status, what, hint},
#include "rules/reasons.def"
#undef REASON
};
_Static_assert(sizeof(reasons) / sizeof(*reasons) == REASON_COUNT, "a row each");

static const char *const classes[] = {"none",    "read",     "launch", "exec", "lifecycle",
				      "data-in", "data-out", "policy", "host"};
_Static_assert(sizeof(classes) / sizeof(*classes) == CLASS_COUNT, "a name each");

const char *operation_name(enum operation op)
{
	return operations[op].name;
}

enum op_class operation_class(enum operation op)
{
	return operations[op].cls;
}

const char *operation_group(enum operation op)
{
	return operations[op].group;
}

const char *operation_doc(enum operation op)
{
	return operations[op].doc;
}

bool operation_by_name(enum operation op)
{
	return operations[op].by_name;
}

enum operation operation_find(struct span name)
{
	for (size_t i = 1; i < OP_COUNT; i++)
		if (span_is(name, operations[i].name))
			return (enum operation)i;
	return OP_UNKNOWN;
}

bool operation_hardens(enum operation op)
{
	return operation_class(op) == CLASS_LAUNCH || op == OP_IMAGE_BUILD;
}

const char *op_class_name(enum op_class cls)
{
	return classes[cls];
}

enum op_class op_class_find(struct span name)
{
	for (size_t i = 1; i < CLASS_COUNT; i++)
		if (span_is(name, classes[i]))
			return (enum op_class)i;
	return CLASS_NONE;
}

bool op_class_changes_state(enum op_class cls)
{
	return cls != CLASS_READ;
}

const char *reason_name(enum reason r)
{
	return reasons[r].name;
}

int reason_status(enum reason r)
{
	return reasons[r].status;
}

const char *reason_what(enum reason r)
{
	return reasons[r].what;
}

const char *reason_hint(enum reason r)
{
	return reasons[r].hint;
}

bool reason_is_floor(enum reason r)
{
	static const bool floor[REASON_COUNT] = {
#define FLOOR(id) [REASON_##id] = true,
#include "rules/floor.def"
#undef FLOOR
	};

	return floor[r];
}

enum reason reason_find(struct span name)
{
	for (size_t i = 1; i < REASON_COUNT; i++)
		if (span_is(name, reasons[i].name))
			return (enum reason)i;
	return REASON_NONE;
}

struct violation *violations_add(struct violations *v, enum reason r)
{
	static struct violation scratch;
	struct violation *slot = &scratch;

	if (v->count < VIOLATIONS_MAX)
		slot = &v->list[v->count++];
	else
		v->dropped++;
	*slot = (struct violation){r, "canonical", "", "", "", ""};
	return slot;
}
