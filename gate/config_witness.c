/* log { witness = { ... } }: somebody else who signs that the log only grows. */
#include "gate/config_priv.h"

#include <string.h>

#define FILE_DEFAULT "/var/lib/sallyport-ship/witness"

int config_build_witness(const struct config_entry *e, struct arena *a, struct config *to,
			 struct err *err)
{
	static const char *const needed[] = {"url", "ca", "key"};
	const struct jv *w = jv_get(e->value, "witness");
	struct witness_conf *conf = &to->witness;
	struct err wrong = {0};

	if (!w)
		return 0;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!jv_get(w, needed[i]))
			return config_wrong(e, err, "witness: '%s' is missing", needed[i]);
	*conf = (struct witness_conf){
		.at = {.name = "witness", .cert = "", .key = "", .socket = "", .token_file = ""},
		.key = jv_str(w, "key", ""),
		.file = jv_str(w, "file", FILE_DEFAULT)};
	conf->at.ca = jv_str(w, "ca", "");
	if (config_sink_url(jv_str(w, "url", ""), a, &conf->at, &wrong) < 0)
		return config_wrong(e, err, "witness: %s", wrong.msg);
	if (!witness_key_ok(conf->key))
		return config_wrong(
			e, err, "witness: key is none of a witness: NAME+ID+KEY, of algorithm 4");
	to->auditor.witness_file = conf->file;
	to->auditor.witness_key = conf->key;
	return 0;
}
