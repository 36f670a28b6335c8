#include "gate/log_folder.h"

int log_folder(const struct args *args, struct loaded *loaded, const char **ret, struct err *err)
{
	*loaded = (struct loaded){.bundle = {.fd = -1}};
	if (args->rest_count && args->config)
		return err_set(err, ERR_INPUT, "give the log's folder or --config, not both");
	if (args->rest_count) {
		*ret = args->rest[0];
		return 0;
	}
	if (!args->config)
		return err_set(err, ERR_INPUT, "give the log's folder, or --config FILE");
	if (load(args->config, loaded, err) < 0)
		return -1;
	*ret = loaded->config.auditor.dir;
	return 0;
}
