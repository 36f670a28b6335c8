/*
 * openapi.h - the document that describes the sandbox API, made of openapi.json by the build.
 */
#ifndef PROXY_SANDBOX_OPENAPI_H
#define PROXY_SANDBOX_OPENAPI_H

#include <stddef.h>

struct openapi_file {
	const char *name;
	const char *text;
	size_t length;
};

extern const struct openapi_file openapi_files[];
extern const size_t openapi_file_count;

#endif
