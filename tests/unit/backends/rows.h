/*
 * rows.h - runs files of rows: a request, and what must come of it.
 *
 *	## label
 *	POST /v1.41/containers/create?name=web
 *	Header: value
 *
 *	{"Image":"alpine"}
 *	= op container.create
 *	= refused json_unknown HostConfig.X	one of the refusals; the field may be left out
 *	= text No such container: x		of the first refusal
 *	= ready
 *	= fact mounts[0].source "/srv/ws"	a fact, as JSON; "(absent)" for none
 *	= object container web mine		kind, name, mine or not-mine
 *	= sent POST /v1.41/...			the request line that goes out
 *	= header Content-Length: 0		a header that goes out
 *	= body {"Image":...}			the exact body
 *	= part HostConfig.Binds ["..."]		a part of the body, as JSON
 *	= reply hijack				stream, rows, held, launch or hijack
 *	= warning HostConfig.X			begins one of the warnings
 *	= instead image_absent No such image: x
 *	= withheld 4				enum withheld, added up
 *	= rounds 1				how often answers were fetched
 *	? sees_all | offline | unreachable | own_socket	how it is asked
 *	? sees ["own",{"name":"web-*"}]	the profile's visibility, as JSON
 *	? adopted {"kind":"volume","id":"x","created":"...","owner":"alice"}
 *	? self sallyport			the gate's own container
 */
#ifndef TESTS_UNIT_BACKENDS_ROWS_H
#define TESTS_UNIT_BACKENDS_ROWS_H

/* Fails the test with all that is wrong.  Returns how many rows there were. */
int rows_run(const char *file);

#endif
