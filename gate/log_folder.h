/*
 * log_folder.h - the log that a command is about.
 */
#ifndef GATE_LOG_FOLDER_H
#define GATE_LOG_FOLDER_H

#include "gate/command.h"
#include "gate/serve.h"

/*
 * The log's folder: the plain argument, or from --config.  *loaded, which *ret may
 * point into, is to be given to unload() in the end.
 */
int log_folder(const struct args *args, struct loaded *loaded, const char **ret, struct err *err);

#endif
