#include "gate/base/capability.h"
#include "gate/base/jv.h"
#include "gate/base/seccomp_priv.h"

static void write_list(struct buf *out, const struct span *words, size_t count)
{
	buf_puts(out, "[");
	for (size_t i = 0; i < count; i++) {
		buf_puts(out, i ? "," : "");
		jv_write_str(out, words[i]);
	}
	buf_puts(out, "]");
}

static void write_arches(const struct seccomp_profile *p, struct buf *out)
{
	if (!p->arch_count)
		return;
	if (!p->mapped) {
		buf_puts(out, ",\"architectures\":");
		write_list(out, p->arches[0].others, p->arches[0].other_count);
		return;
	}
	buf_puts(out, ",\"archMap\":[");
	for (size_t i = 0; i < p->arch_count; i++) {
		buf_printf(out, "%s{\"architecture\":", i ? "," : "");
		jv_write_str(out, p->arches[i].native);
		buf_puts(out, ",\"subArchitectures\":");
		write_list(out, p->arches[i].others, p->arches[i].other_count);
		buf_puts(out, "}");
	}
	buf_puts(out, "]");
}

static void write_when(const char *key, const struct seccomp_when *w, struct buf *out)
{
	const char *between = "";

	if (!w->capabilities && !w->machine_count && !w->kernel.len)
		return;
	buf_printf(out, ",\"%s\":{", key);
	if (w->capabilities) {
		const char *comma = "";

		buf_puts(out, "\"caps\":[");
		for (unsigned i = 0; capability_name(i); i++)
			if (w->capabilities & UINT64_C(1) << i) {
				buf_printf(out, "%s\"CAP_%s\"", comma, capability_name(i));
				comma = ",";
			}
		buf_puts(out, "]");
		between = ",";
	}
	if (w->machine_count) {
		buf_printf(out, "%s\"arches\":", between);
		write_list(out, w->machines, w->machine_count);
		between = ",";
	}
	if (w->kernel.len) {
		buf_printf(out, "%s\"minKernel\":", between);
		jv_write_str(out, w->kernel);
	}
	buf_puts(out, "}");
}

static void write_conditions(const struct seccomp_rule *r, struct buf *out)
{
	buf_puts(out, ",\"args\":[");
	for (size_t i = 0; i < r->arg_count; i++) {
		const struct seccomp_condition *c = &r->args[i];

		buf_printf(out, "%s{\"index\":%u,\"value\":%llu", i ? "," : "", c->index,
			   (unsigned long long)c->value);
		if (c->op == SECCOMP_MASKED_EQ)
			buf_printf(out, ",\"valueTwo\":%llu", (unsigned long long)c->two);
		buf_printf(out, ",\"op\":\"%s\"}", seccomp_operator_name(c->op));
	}
	buf_puts(out, "]");
}

static void write_rule(const struct seccomp_rule *r, struct buf *out)
{
	buf_puts(out, "{\"names\":[");
	for (size_t i = 0; i < r->name_count; i++) {
		buf_puts(out, i ? "," : "");
		jv_write_str(out, r->names[i].text);
	}
	buf_printf(out, "],\"action\":\"%s\"", seccomp_action_name(r->action));
	if (r->errno_ret >= 0)
		buf_printf(out, ",\"errnoRet\":%d", r->errno_ret);
	if (r->arg_count)
		write_conditions(r, out);
	write_when("includes", &r->includes, out);
	write_when("excludes", &r->excludes, out);
	buf_puts(out, "}");
}

void seccomp_profile_write(const struct seccomp_profile *p, struct buf *out)
{
	buf_printf(out, "{\"defaultAction\":\"%s\"", seccomp_action_name(p->action));
	if (p->errno_ret >= 0)
		buf_printf(out, ",\"defaultErrnoRet\":%d", p->errno_ret);
	write_arches(p, out);
	if (p->logs)
		buf_puts(out, ",\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"]");
	buf_puts(out, ",\"syscalls\":[");
	for (size_t i = 0; i < p->rule_count; i++) {
		buf_puts(out, i ? "," : "");
		write_rule(&p->rules[i], out);
	}
	buf_puts(out, "]}");
}
