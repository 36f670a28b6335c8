#include "gate/keeper/box_priv.h"

#include <string.h>

#define VARIABLES_MAX 1024

static const struct {
	const char *name, *why;
	bool prefix;
} refused[] = {
#define NAME(name, why)   {name, why, false},
#define PREFIX(name, why) {name, why, true},
#include "gate/keeper/box_env.def"
#undef NAME
#undef PREFIX
};

static int check_one(const char *var, size_t name_len, struct err *err)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		size_t len = strlen(refused[i].name);

		if (strncmp(var, refused[i].name, len) == 0 &&
		    (refused[i].prefix || name_len == len))
			return err_set(err, ERR_INPUT, "variable %.*s is not passed on: %s",
				       (int)name_len, var, refused[i].why);
	}
	return 0;
}

static bool comes_twice(const char *const *env, size_t i, size_t name_len)
{
	for (size_t k = 0; k < i; k++)
		if (strncmp(env[k], env[i], name_len + 1) == 0)
			return true;
	return false;
}

int box_env_check(const char *const *env, bool loader, struct err *err)
{
	for (size_t i = 0; env[i]; i++) {
		const char *sign = strchr(env[i], '=');

		if (i == VARIABLES_MAX)
			return err_set(err, ERR_LIMIT, "more than %d variables", VARIABLES_MAX);
		if (!sign || sign == env[i])
			return err_set(err, ERR_INPUT, "a variable without name or value");
		if (comes_twice(env, i, (size_t)(sign - env[i])))
			return err_set(err, ERR_INPUT, "variable %.*s comes twice",
				       (int)(sign - env[i]), env[i]);
		if (!loader && check_one(env[i], (size_t)(sign - env[i]), err) < 0)
			return -1;
	}
	return 0;
}
