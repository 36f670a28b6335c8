/* What the configuration accepts, and what it says of each mistake. */
#include "gate/config.h"
#include "gate/config_priv.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "/etc/sallyport/gate.lua"

/* Entries as luadata_read() gives them. */
#define LOG "{\"word\":\"log\",\"line\":1,\"value\":{\"dir\":\"/var/log/sp\"}}"
#define BACKEND                                                                                    \
	NAMED("backend", "engine", "2", "\"kind\":\"docker\",\"address\":\"unix:///run/e.sock\"")
#define IDENTITY NAMED("identity", "ci", "3", "\"uid\":1000,\"profile\":\"strict\"")
#define LISTENER                                                                                   \
	NAMED("listener", "agents", "4", "\"socket\":\"/run/sp/a.sock\",\"identities\":[\"ci\"]")
#define NAMED(word, name, line, members)                                                           \
	"{\"word\":\"" word "\",\"name\":\"" name "\",\"line\":" line ",\"value\":{" members "}}"
#define PLAIN(word, line, members)                                                                 \
	"{\"word\":\"" word "\",\"line\":" line ",\"value\":{" members "}}"
#define WITNESS_KEY "w.example/1+bcd5f9c1+BAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
#define WITNESS(key)                                                                               \
	"\"witness\":{\"url\":\"https://w.example/\",\"ca\":\"/ca\",\"key\":\"" key "\"}"
#define LOG_WITH(members)                                                                          \
	PLAIN("log", "1", "\"dir\":\"/var/log/sp\"," members) "," BACKEND "," IDENTITY "," LISTENER
#define ALL LOG "," BACKEND "," IDENTITY "," LISTENER
#define HOOK(only)                                                                                 \
	ALL "," NAMED("sink", "hook", "7",                                                         \
		      "\"kind\":\"https\",\"url\":\"https://h/\",\"ca\":\"/ca\",\"only\":" only)

/* An identity without a sign of its own, and its socket. */
#define AS                                                                                         \
	ALL "," NAMED("identity", "job", "7", "\"profile\":\"p\"") "," NAMED(                      \
		"listener", "jobs", "8", "\"socket\":\"/run/j/own.sock\",\"as\":\"job\"")
/* The identity "job", with a socket for its containers. */
#define OWN(listener)                                                                              \
	LOG "," NAMED("backend", "engine", "2",                                                    \
		      "\"kind\":\"docker\",\"address\":\"unix:///run/e.sock\",\"files\":\"same_"   \
		      "host\"") "," IDENTITY "," LISTENER                                          \
				"," NAMED("identity", "job", "7",                                  \
					  "\"uid\":7,\"profile\":\"p\",\"own_socket\":"            \
					  "\"jobs\"") "," NAMED("listener", "jobs", "8",           \
								"\"socket\":\"/run/j/"             \
								"own.sock\"," listener)

/* An identity with a token, and a TCP listener for it. */
#define ENGINE(more)                                                                               \
	LOG "," NAMED("backend", "e", "2", "\"kind\":\"docker\"," more) "," IDENTITY "," LISTENER
#define TCP(address, more)                                                                         \
	ALL "," NAMED("identity", "net", "7",                                                      \
		      "\"token\":\"sha256:"                                                        \
		      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","        \
		      "\"profile\":\"p\"") "," NAMED("listener", "net", "8",                       \
						     "\"tcp\":\"" address                          \
						     "\",\"identities\":[\"net\"]" more)
#define PAIR               "\"cert\":\"/c\",\"key\":\"/k\""
#define TLS(address, keys) TCP(address, ",\"tls\":{" keys "}")
#define TLS_(who, keys)                                                                            \
	NAMED("listener", "net", "8", "\"tcp\":\"0.0.0.0:2376\"," who ",\"tls\":{" keys "}")
#define CERT(cert, keys)                                                                           \
	ALL "," NAMED("identity", "c", "7", "\"cert\":\"" cert "\",\"profile\":\"p\"") "," TLS_(   \
		"\"identities\":[\"c\"]", keys)
#define CERT_FORMS                                                                                 \
	"\"cn:NAME\", \"dns:HOST\", \"uri:URI\", \"email:ADDRESS\", \"sha256:\" or \"spki:\" and " \
	"64 "                                                                                      \
	"hexadecimal digits"

static int build(const char *entries, struct arena *a, struct config *ret, struct err *err)
{
	enum jv_fault fault;
	struct jv tree;
	char text[8192];

	snprintf(text, sizeof(text), "[%s]", entries);
	if (jv_parse(a, span_of(text), &tree, &fault, err) < 0)
		fail_msg("the test's own JSON is wrong: %s", err->msg);
	return config_build(&tree, PATH, a, ret, err);
}

static const struct {
	const char *label, *entries, *want; /* want: without the path in front */
} cases[] = {
	{"fine", ALL, ""},
	{"no log", BACKEND "," LISTENER, ": 'log { dir = ... }' is missing"},
	{"no backend", LOG "," IDENTITY "," LISTENER, ": there is no backend"},
	{"no listener", LOG "," BACKEND, ": there is no listener"},
	{"unknown key", ALL "," PLAIN("limits", "9", "\"conections\":5"),
	 ":9: limits: there is no key 'conections' (did you mean 'connections'?)"},
	{"unknown key far off", ALL "," PLAIN("limits", "9", "\"qqqqqqq\":5"),
	 ":9: limits: there is no key 'qqqqqqq'"},
	{"key of another word", ALL "," PLAIN("limits", "9", "\"socket\":\"/a\""),
	 ":9: limits: there is no key 'socket'"},
	{"below the range", ALL "," PLAIN("limits", "9", "\"workers\":0"),
	 ":9: limits: workers takes 1 to 256 processes, not 0"},
	{"above the range", ALL "," PLAIN("limits", "9", "\"workers\":257"),
	 ":9: limits: workers takes 1 to 256 processes, not 257"},
	{"negative", ALL "," PLAIN("limits", "9", "\"workers\":-1"),
	 ":9: limits: workers takes 1 to 256 processes, not -1"},
	{"a text for a number", ALL "," PLAIN("limits", "9", "\"workers\":\"two\""),
	 ":9: limits: workers takes 1 to 256 processes, not \"two\""},
	{"a size for a count", ALL "," PLAIN("limits", "9", "\"workers\":\"1KiB\""),
	 ":9: limits: workers takes 1 to 256 processes, not \"1KiB\""},
	{"a fraction", ALL "," PLAIN("limits", "9", "\"workers\":1.5"),
	 ":9: limits: workers must be a whole number, not this number"},
	{"size", ALL "," PLAIN("limits", "9", "\"body_bytes\":\"2MiB\""), ""},
	{"size without its unit", ALL "," PLAIN("limits", "9", "\"body_bytes\":\"2000000\""),
	 ":9: limits: body_bytes takes 1024 to 67108864 bytes, not \"2000000\""},
	{"size above the range", ALL "," PLAIN("limits", "9", "\"body_bytes\":\"2GiB\""),
	 ":9: limits: body_bytes takes 1024 to 67108864 bytes, not \"2GiB\""},
	{"word twice", LOG "," ALL, ":1: log: stands twice"},
	{"name twice", ALL "," BACKEND, ":2: backend \"engine\": stands twice, first in line 2"},
	{"unknown word", ALL "," PLAIN("frob", "9", ""),
	 ":9: frob: is no word of the configuration"},
	{"required key", LOG "," NAMED("backend", "e", "2", "\"kind\":\"docker\"") "," LISTENER,
	 ":2: backend \"e\": 'address' is missing: Where it is: unix:///PATH, or "
	 "tcp://HOST:PORT; a name is looked up when the gate starts."},
	{"kind of backend",
	 LOG "," NAMED("backend", "e", "2",
		       "\"kind\":\"dockr\",\"address\":\"unix:///r\"") "," LISTENER,
	 ":2: backend \"e\": kind must be the name of an adapter, not \"dockr\" (did you "
	 "mean 'docker'?)"},
	{"tcp without a port", ENGINE("\"address\":\"tcp://h\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://h\""},
	{"tcp with port 0", ENGINE("\"address\":\"tcp://h:0\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://h:0\""},
	{"tcp with a port that is none", ENGINE("\"address\":\"tcp://h:70000\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://h:70000\""},
	{"a port with a leading zero", ENGINE("\"address\":\"tcp://h:02376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://h:02376\""},
	{"no host", ENGINE("\"address\":\"tcp://:2376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://:2376\""},
	{"a path behind it", ENGINE("\"address\":\"tcp://h:2376/x\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://h:2376/x\""},
	{"a user before it", ENGINE("\"address\":\"tcp://u@h:2376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://u@h:2376\""},
	{"half an address", ENGINE("\"address\":\"tcp://1.2.3:2376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://1.2.3:2376\""},
	{"v6 without brackets", ENGINE("\"address\":\"tcp://::1:2376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://::1:2376\""},
	{"brackets around a name", ENGINE("\"address\":\"tcp://[h]:2376\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"tcp://[h]:2376\""},
	{"another scheme", ENGINE("\"address\":\"ssh://h:22\""),
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"ssh://h:22\""},
	{"tcp on this host", ENGINE("\"address\":\"tcp://127.0.0.1:2375\""), ""},
	{"tcp on this host, v6", ENGINE("\"address\":\"tcp://[::1]:2375\""), ""},
	{"tcp with TLS",
	 ENGINE("\"address\":\"tcp://engine.test:2376\",\"tls\":{\"ca\":\"/c/ca.pem\",\"cert\":\"/"
		"c/cert.pem\",\"key\":\"/c/key.pem\"}"),
	 ""},
	{"tcp with TLS, no certificate",
	 ENGINE("\"address\":\"tcp://10.0.0.1:2376\",\"tls\":{\"ca\":\"/c/ca.pem\"}"), ""},
	{"TLS without ca", ENGINE("\"address\":\"tcp://h:2376\",\"tls\":{}"),
	 ":2: backend \"e\": tls: 'ca' is missing: whose certificate is the engine's?"},
	{"TLS with half a certificate",
	 ENGINE("\"address\":\"tcp://h:2376\",\"tls\":{\"ca\":\"/c\",\"key\":\"/k\"}"),
	 ":2: backend \"e\": tls: 'cert' and 'key' go together"},
	{"TLS of a socket", ENGINE("\"address\":\"unix:///e\",\"tls\":{\"ca\":\"/c\"}"),
	 ":2: backend \"e\": 'tls' is of engines at tcp://"},
	{"plain tcp to another host", ENGINE("\"address\":\"tcp://h:2375\""),
	 ":2: backend \"e\": tcp://h:2375 is on another host, and without TLS whoever is on the "
	 "way is root there: give tls = { ca = ..., cert = ..., key = ... }, or, if nobody else is "
	 "on that network, say plaintext = true here and network { plaintext = true }"},
	{"plain tcp, said once", ENGINE("\"address\":\"tcp://h:2375\",\"plaintext\":true"),
	 ":2: backend \"e\": tcp://h:2375 is on another host, and without TLS whoever is on the "
	 "way is root there: give tls = { ca = ..., cert = ..., key = ... }, or, if nobody else is "
	 "on that network, say plaintext = true here and network { plaintext = true }"},
	{"plain tcp, said twice",
	 ENGINE("\"address\":\"tcp://h:2375\",\"plaintext\":true") "," PLAIN("network", "9",
									     "\"plaintext\":true"),
	 ""},
	{"files of another host",
	 ENGINE("\"address\":\"tcp://h:2376\",\"tls\":{\"ca\":\"/c/ca.pem\",\"cert\":\"/c/"
		"cert.pem\",\"key\":\"/c/key.pem\"},\"files\":\"same_host\""),
	 ":2: backend \"e\": files = \"same_host\" would look at this host's files in place of "
	 "that one's: say \"none\", or, if it does run on this host, local = true"},
	{"files of this host",
	 ENGINE("\"address\":\"tcp://h:2376\",\"tls\":{\"ca\":\"/c/ca.pem\",\"cert\":\"/c/"
		"cert.pem\",\"key\":\"/c/key.pem\"},\"files\":\"same_host\",\"local\":true"),
	 ""},
	{"group of tcp", ENGINE("\"address\":\"tcp://127.0.0.1:2375\",\"group\":\"root\""),
	 ":2: backend \"e\": 'group' is of sockets: leave it out"},
	{"address is relative",
	 LOG "," NAMED("backend", "e", "2",
		       "\"kind\":\"docker\",\"address\":\"unix://e.sock\"") "," LISTENER,
	 ":2: backend \"e\": address must be \"unix:///PATH\" or \"tcp://HOST:PORT\", not "
	 "\"unix://e.sock\""},
	{"files",
	 LOG "," NAMED("backend", "e", "2",
		       "\"kind\":\"docker\",\"address\":\"unix:///"
		       "r\",\"files\":\"here\"") "," LISTENER,
	 ":2: backend \"e\": files must be \"same_host\" or \"none\", not \"here\""},
	{"identity without a sign", ALL "," NAMED("identity", "x", "7", "\"profile\":\"p\""),
	 ":7: identity \"x\": give uid, gid, token or cert, or name it with 'as' in a listener: "
	 "how "
	 "else is it recognised?"},
	{"identity without a sign in a list",
	 ALL "," NAMED("identity", "x", "7", "\"profile\":\"p\"") "," NAMED(
		 "listener", "two", "8", "\"socket\":\"/b\",\"identities\":[\"x\"]"),
	 ":8: listener \"two\": identity 'x' has neither uid, gid, token, cert nor "
	 "container: only 'as' can name it"},
	{"a container that is none",
	 ALL "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"container\":\"traefik\""),
	 ":7: identity \"x\": container: 'traefik' names no container: write \"name:NAME\", "
	 "\"image:IMAGE\", \"label:NAME=VALUE\", \"id:\" and all 64 digits, or \"none\""},
	{"made by somebody, and no container",
	 ALL "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"uid\":1,\"made_by\":\"a\""),
	 ":7: identity \"x\": 'made_by' is of 'container', which is missing"},
	{"made by somebody, and a process of the host",
	 ALL "," NAMED("identity", "x", "7",
		       "\"profile\":\"p\",\"container\":\"none\",\"made_by\":\"a\""),
	 ":7: identity \"x\": 'made_by' is of containers, and this is none"},
	{"a container, and an engine elsewhere",
	 ALL
	 "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"container\":\"name:x\"") "," NAMED(
		 "listener", "two", "8", "\"socket\":\"/b\",\"identities\":[\"x\"]"),
	 ":8: listener \"two\": callers' containers can be told on the engine's own host alone: "
	 "backend \"engine\" must say files = \"same_host\""},
	{"nobody is looked at, and one is known by that",
	 ALL
	 "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"container\":\"name:x\"") "," NAMED(
		 "listener", "two", "8",
		 "\"socket\":\"/b\",\"identities\":[\"x\"],\"containers\":false"),
	 ":8: listener \"two\": containers = false, but identities are known by theirs"},
	{"a process of the host, over TCP",
	 ALL "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"container\":\"none\"") "," NAMED(
		 "listener", "two", "8", "\"tcp\":\"127.0.0.1:2375\",\"identities\":[\"x\"]"),
	 ":8: listener \"two\": identity 'x' has neither token, cert nor container, and the "
	 "kernel does not say which user a TCP connection comes from"},
	{"a container, over TCP, with the engine elsewhere",
	 ALL
	 "," NAMED("identity", "x", "7", "\"profile\":\"p\",\"container\":\"name:x\"") "," NAMED(
		 "listener", "two", "8", "\"tcp\":\"127.0.0.1:2375\",\"identities\":[\"x\"]"),
	 ""},
	{"everybody is one", AS, ""},
	{"everybody is one who is recognised elsewhere, too",
	 ALL "," NAMED("listener", "two", "8", "\"socket\":\"/b\",\"as\":\"ci\""), ""},
	{"everybody is an unknown one",
	 ALL "," NAMED("listener", "two", "8", "\"socket\":\"/b\",\"as\":\"cj\""),
	 ":8: listener \"two\": no identity is called 'cj' (did you mean 'ci'?)"},
	{"everybody is one, and others",
	 ALL "," NAMED("listener", "two", "8",
		       "\"socket\":\"/b\",\"as\":\"ci\",\"identities\":[\"ci\"]"),
	 ":8: listener \"two\": 'as' says who everybody is: leave 'identities' and 'otherwise' "
	 "out"},
	{"everybody is one, or somebody else",
	 ALL
	 "," NAMED("listener", "two", "8", "\"socket\":\"/b\",\"as\":\"ci\",\"otherwise\":\"p\""),
	 ":8: listener \"two\": 'as' says who everybody is: leave 'identities' and 'otherwise' "
	 "out"},
	{"an own socket", OWN("\"as\":\"job\""), ""},
	{"an own socket of nobody",
	 AS "," NAMED("identity", "y", "9", "\"uid\":9,\"profile\":\"p\",\"own_socket\":\"job\""),
	 ":9: identity \"y\": own_socket: no listener is called 'job' (did you mean 'jobs'?)"},
	{"an own socket for others", OWN("\"identities\":[\"job\"]"),
	 ":7: identity \"job\": own_socket: listener \"jobs\" must say as = \"job\", so that "
	 "containers are judged as who made them"},
	{"an own socket of another", OWN("\"as\":\"ci\""),
	 ":7: identity \"job\": own_socket: listener \"jobs\" must say as = \"job\", so that "
	 "containers are judged as who made them"},
	{"an own socket far from the engine",
	 ALL "," NAMED(
		 "identity", "job", "7",
		 "\"uid\":7,\"profile\":\"p\",\"own_socket\":\"jobs\"") "," NAMED("listener",
										  "jobs", "8",
										  "\"socket\":\"/"
										  "run/j/"
										  "own.sock\","
										  "\"as\":\"job\""),
	 ":7: identity \"job\": own_socket: backend \"engine\" must say files = \"same_host\": "
	 "the gate's socket is a file of this host"},
	{"identity without a profile", ALL "," NAMED("identity", "x", "7", "\"uid\":1"),
	 ":7: identity \"x\": 'profile' is missing: The trust profile that it is judged "
	 "by."},
	{"uid out of range",
	 ALL "," NAMED("identity", "x", "7", "\"uid\":4294967295,\"profile\":\"p\""),
	 ":7: identity \"x\": uid must be a uid, or the name of a user of this host, not "
	 "4294967295"},
	{"uid by an unknown name",
	 ALL "," NAMED("identity", "x", "7", "\"uid\":\"nobody-here\",\"profile\":\"p\""),
	 ":7: identity \"x\": uid must be a uid, or the name of a user of this host, not "
	 "\"nobody-here\""},
	{"a listener of a later version",
	 ALL "," NAMED("listener", "x", "7", "\"fd\":\"t\",\"otherwise\":\"p\""),
	 ":7: listener \"x\": 'fd' is not in this version; leave it out"},
	{"retention", LOG_WITH("\"retention\":{\"days\":365,\"bytes\":\"4GiB\"}"), ""},
	{"retention in one word", LOG_WITH("\"retention\":\"forever\""), ""},
	{"retention in another word", LOG_WITH("\"retention\":\"rotate\""),
	 ":1: log: mode must be \"signed\", \"evidence\" or \"forever\", not \"rotate\""},
	{"retention of no days", LOG_WITH("\"retention\":{\"days\":0}"),
	 ":1: log: days takes 1 to 36500 days, not 0"},
	{"retention by another key", LOG_WITH("\"retention\":{\"day\":9}"),
	 ":1: log: there is no key 'day' (did you mean 'days'?)"},
	{"evidence without an anchor", LOG_WITH("\"retention\":\"evidence\""),
	 ":1: log: retention as evidence needs an anchor: a witness, an anchor file (anchors = { "
	 "\"/PATH\" }), or at least \"syslog\" there"},
	{"evidence by syslog", LOG_WITH("\"retention\":\"evidence\",\"anchors\":[\"syslog\"]"), ""},
	{"evidence by a witness", LOG_WITH("\"retention\":\"evidence\"," WITNESS(WITNESS_KEY)), ""},
	{"a witness without an authority",
	 LOG_WITH("\"witness\":{\"url\":\"https://w/\",\"key\":\"k\"}"),
	 ":1: log: witness: 'ca' is missing"},
	{"a witness of a key that is none", LOG_WITH(WITNESS("w+00000000+AAAA")),
	 ":1: log: witness: key is none of a witness: NAME+ID+KEY, of algorithm 4"},
	{"a witness with a key of another word",
	 LOG_WITH("\"witness\":{\"url\":\"https://w/\",\"often\":3}"),
	 ":1: log: there is no key 'often'"},
	{"evidence", LOG_WITH("\"retention\":\"evidence\",\"anchors\":[\"/a/b\"]"), ""},
	{"a narrowed sink", HOOK("[\"approvals\",\"alarms\"]"), ""},
	{"a sink narrowed to a word that is none", HOOK("[\"approvals\",\"alarm\"]"),
	 ":7: sink \"hook\": only knows no 'alarm'; `sallyport help sinks` lists what it knows"},
	{"a sink narrowed to nothing", HOOK("[]"),
	 ":7: sink \"hook\": only is empty: nothing would be shipped"},
	{"a narrowed database",
	 ALL "," NAMED("sink", "db", "7",
		       "\"kind\":\"postgres\",\"connection\":\"host=x\",\"only\":[\"alarms\"]"),
	 ":7: sink \"db\": 'only' is not of kind \"postgres\""},
	{"a token in the clear",
	 ALL "," NAMED("identity", "x", "7", "\"token\":\"secret\",\"profile\":\"p\""),
	 ":7: identity \"x\": token must be \"sha256:\" and 64 hexadecimal digits (`sallyport "
	 "token` "
	 "makes one)"},
	{"a token", TCP("127.0.0.1:2375", ""), ""},
	{"tcp on IPv6", TCP("[::1]:2375", ""), ""},
	{"tcp with a name", TCP("localhost:2375", ""),
	 ":8: listener \"net\": tcp must be an address with a port, such as \"127.0.0.1:2375\" or "
	 "\"[::1]:2375\", not \"localhost:2375\""},
	{"tcp without a port", TCP("127.0.0.1", ""),
	 ":8: listener \"net\": tcp must be an address with a port, such as \"127.0.0.1:2375\" or "
	 "\"[::1]:2375\", not \"127.0.0.1\""},
	{"tcp with port 0", TCP("127.0.0.1:0", ""),
	 ":8: listener \"net\": tcp must be an address with a port, such as \"127.0.0.1:2375\" or "
	 "\"[::1]:2375\", not \"127.0.0.1:0\""},
	{"tcp with a port too high", TCP("127.0.0.1:65536", ""),
	 ":8: listener \"net\": tcp must be an address with a port, such as \"127.0.0.1:2375\" or "
	 "\"[::1]:2375\", not \"127.0.0.1:65536\""},
	{"tcp for others", TCP("0.0.0.0:2375", ""),
	 ":8: listener \"net\": 0.0.0.0:2375 is reached by other hosts, and there is no TLS: give "
	 "'tls', or "
	 "listen on 127.0.0.1, or, if nobody else is on that network, say plaintext = true here "
	 "and "
	 "network { plaintext = true }"},
	{"tcp for others, said once", TCP("[::]:2375", ",\"plaintext\":true"),
	 ":8: listener \"net\": [::]:2375 is reached by other hosts, and there is no TLS: give "
	 "'tls', or "
	 "listen on 127.0.0.1, or, if nobody else is on that network, say plaintext = true here "
	 "and "
	 "network { plaintext = true }"},
	{"tcp for others, said twice",
	 TCP("[::]:2375", ",\"plaintext\":true") "," PLAIN("network", "9", "\"plaintext\":true"),
	 ""},
	{"tls for others", TLS("0.0.0.0:2376", PAIR), ""},
	{"tls without a key", TLS("0.0.0.0:2376", "\"cert\":\"/c\""),
	 ":8: listener \"net\": tls takes at least a cert and its key"},
	{"tls that is a text", TCP("0.0.0.0:2376", ",\"tls\":\"/c\""),
	 ":8: listener \"net\": tls must be a table of keys, such as { key = value }, not \"/c\""},
	{"tls with a relative path", TLS("0.0.0.0:2376", PAIR ",\"ca\":\"ca.pem\""),
	 ":8: listener \"net\": ca must be an absolute path without '..', '.', '//' or a '/' at "
	 "its "
	 "end, not \"ca.pem\""},
	{"tls with a mistyped key", TLS("0.0.0.0:2376", PAIR ",\"cas\":\"/ca\""),
	 ":8: listener \"net\": there is no key 'cas' (did you mean 'ca'?)"},
	{"tls that revokes without authorities", TLS("0.0.0.0:2376", PAIR ",\"crl\":\"/crl\""),
	 ":8: listener \"net\": tls: crl and clients are of client certificates: give 'ca', the "
	 "authorities whose certificates are accepted"},
	{"tls with clients of a third kind",
	 TLS("0.0.0.0:2376", PAIR ",\"ca\":\"/ca\",\"clients\":\"none\""),
	 ":8: listener \"net\": clients must be \"required\" or \"optional\", not \"none\""},
	{"tls and plaintext", TCP("0.0.0.0:2376", ",\"plaintext\":true,\"tls\":{" PAIR "}"),
	 ":8: listener \"net\": 'plaintext' is of tcp without 'tls': leave it out"},
	{"tls on a socket",
	 ALL "," NAMED("listener", "net", "8",
		       "\"socket\":\"/t\",\"otherwise\":\"p\",\"tls\":{" PAIR "}"),
	 ":8: listener \"net\": 'tls' is of tcp: a socket's callers are on this host"},
	{"a certificate", CERT("cn:ci-1", PAIR ",\"ca\":\"/ca\""), ""},
	{"a certificate that nobody asks for", CERT("cn:ci-1", PAIR),
	 ":8: listener \"net\": identity 'c' is known by a certificate, and this listener asks for "
	 "none: give it tls with a ca"},
	{"a certificate of no form", CERT("ci-1", PAIR ",\"ca\":\"/ca\""),
	 ":7: identity \"c\": cert must be " CERT_FORMS ", not \"ci-1\""},
	{"a certificate with a wildcard", CERT("dns:*.example", PAIR ",\"ca\":\"/ca\""),
	 ":7: identity \"c\": cert must be " CERT_FORMS ", not \"dns:*.example\""},
	{"tcp for a certificate's owner who has a uid",
	 ALL
	 "," NAMED("identity", "c", "7", "\"cert\":\"cn:c\",\"uid\":7,\"profile\":\"p\"") "," TLS_(
		 "\"identities\":[\"c\"]", PAIR ",\"ca\":\"/ca\""),
	 ":8: listener \"net\": identity 'c' has a uid or gid, and the kernel does not say which "
	 "user "
	 "a TCP connection comes from: nobody would ever fit"},
	{"tcp with a mode", TCP("127.0.0.1:2375", ",\"mode\":\"0600\""),
	 ":8: listener \"net\": 'mode' is of sockets: leave it out"},
	{"tcp for a user",
	 ALL "," NAMED("listener", "net", "8", "\"tcp\":\"127.0.0.1:1\",\"identities\":[\"ci\"]"),
	 ":8: listener \"net\": identity 'ci' has neither token, cert nor container, and the "
	 "kernel does not say which user a TCP connection comes from"},
	{"neither socket nor tcp", ALL "," NAMED("listener", "net", "8", "\"otherwise\":\"p\""),
	 ":8: listener \"net\": give 'socket' or 'tcp', one of them"},
	{"nowhere for the status",
	 LOG "," BACKEND
	     "," NAMED("listener", "net", "8", "\"tcp\":\"127.0.0.1:1\",\"otherwise\":\"p\""),
	 ": every listener is tcp: say where `sallyport status` finds the gate, admin { socket = "
	 "\"/run/sallyport/admin.sock\" }"},
	{"the status in a place of its own",
	 LOG
	 "," BACKEND
	 "," NAMED("listener", "net", "8", "\"tcp\":\"127.0.0.1:1\",\"otherwise\":\"p\"") "," PLAIN(
		 "admin", "9", "\"socket\":\"/run/a.sock\""),
	 ""},
	{"roles of the admin socket",
	 ALL "," PLAIN("admin", "9",
		       "\"group\":\"daemon\",\"mode\":\"0660\",\"operate\":[\"root\",\"daemon\"],"
		       "\"approve\":[],\"audit\":[\"mail\"],\"listeners\":1024,\"lifetime\":1"),
	 ""},
	{"a role of nobody", ALL "," PLAIN("admin", "9", "\"operate\":[\"no-such-name\"]"),
	 ":9: admin: there is neither a user nor a group called 'no-such-name'"},
	{"sockets without a state", ALL "," PLAIN("admin", "9", "\"sockets\":\"/run/a\""),
	 ":9: admin: 'sockets' says where listeners may be made at run time, and 'state' where "
	 "they "
	 "are kept: give 'state' as well"},
	{"a state without sockets", ALL "," PLAIN("admin", "9", "\"state\":\"/var/a\""), ""},
	{"too many listeners", ALL "," PLAIN("admin", "9", "\"listeners\":1025"),
	 ":9: admin: listeners takes 1 to 1024 listeners, not 1025"},
	{"metrics alone",
	 ALL "," NAMED("listener", "m", "8", "\"socket\":\"/run/m.sock\",\"metrics\":true"), ""},
	{"metrics and more",
	 ALL "," NAMED("listener", "m", "8",
		       "\"socket\":\"/run/m.sock\",\"metrics\":true,\"otherwise\":\"p\""),
	 ":8: listener \"m\": with 'metrics' nothing is forwarded: leave 'otherwise' out"},
	{"a name with a slash", ALL "," NAMED("identity", "a/b", "7", "\"uid\":1"),
	 ":7: identity \"a/b\": a name is 1 to 64 letters, digits, '.', '_' and '-'"},
	{"an empty name", ALL "," NAMED("identity", "", "7", "\"uid\":1"),
	 ":7: identity: a name is 1 to 64 letters, digits, '.', '_' and '-'"},
	{"relative socket",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"a.sock\""),
	 ":4: listener \"l\": socket must be an absolute path of at most 100 bytes, not "
	 "\"a.sock\""},
	{"socket with ..",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/run/../a\""),
	 ":4: listener \"l\": socket must be an absolute path of at most 100 bytes, not "
	 "\"/run/../a\""},
	{"socket and tcp",
	 LOG "," BACKEND
	     "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"tcp\":\"127.0.0.1:1\""),
	 ":4: listener \"l\": give 'socket' or 'tcp', one of them"},
	{"mode as a number",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"mode\":432"),
	 ":4: listener \"l\": mode must be an octal mode as a string, such as \"0660\", "
	 "not 432"},
	{"mode with an 8",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"mode\":\"0680\""),
	 ":4: listener \"l\": mode must be an octal mode as a string, such as \"0660\", "
	 "not \"0680\""},
	{"set-id mode",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"mode\":\"4755\""),
	 ":4: listener \"l\": mode must be an octal mode as a string, such as \"0660\", "
	 "not \"4755\""},
	{"unknown owner",
	 LOG "," BACKEND
	     "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"owner\":\"nobody-here\""),
	 ":4: listener \"l\": owner must be the name of a user of this host, not "
	 "\"nobody-here\""},
	{"unknown group",
	 LOG "," BACKEND
	     "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"group\":\"nobody-here\""),
	 ":4: listener \"l\": group must be the name of a group of this host, not "
	 "\"nobody-here\""},
	{"unknown backend",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"backend\":\"engin\""),
	 ":4: listener \"l\": no backend is called 'engin' (did you mean 'engine'?)"},
	{"which backend",
	 ALL "," NAMED("backend", "two", "6", "\"kind\":\"docker\",\"address\":\"unix:///two\""),
	 ":4: listener \"agents\": 'backend' is missing, and there are several"},
	{"unknown identity",
	 LOG "," BACKEND "," IDENTITY
	     "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"identities\":[\"cl\"]"),
	 ":4: listener \"l\": no identity is called 'cl' (did you mean 'ci'?)"},
	{"identity twice",
	 LOG "," BACKEND "," IDENTITY
	     "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"identities\":[\"ci\",\"ci\"]"),
	 ":4: listener \"l\": identity 'ci' stands twice"},
	{"identities is a text",
	 LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\",\"identities\":\"ci\""),
	 ":4: listener \"l\": identities must be a list of names, not \"ci\""},
	{"nobody comes in", LOG "," BACKEND "," NAMED("listener", "l", "4", "\"socket\":\"/a\""),
	 ":4: listener \"l\": nobody could come in: give 'identities', 'otherwise' or 'as'"},
	{"same socket",
	 ALL "," NAMED("listener", "two", "6", "\"socket\":\"/run/sp/a.sock\",\"otherwise\":\"p\""),
	 ":6: listener \"two\": listener \"agents\" has the same socket or address"},
	{"the engine's own socket",
	 ALL "," NAMED("listener", "two", "6", "\"socket\":\"/run/e.sock\",\"otherwise\":\"p\""),
	 ":6: listener \"two\": this is the socket of backend \"engine\""},
	{"log dir relative", PLAIN("log", "1", "\"dir\":\"log\"") "," BACKEND "," LISTENER,
	 ":1: log: dir must be an absolute path without '..', '.', '//' or a '/' at its "
	 "end, not \"log\""},
	{"a control byte", ALL "," NAMED("identity", "x", "7", "\"uid\":1,\"profile\":\"a\\nb\""),
	 ":7: identity \"x\": profile must be a text of one line, not \"a?b\""},
	{"a list for a table", ALL ",{\"word\":\"limits\",\"line\":9,\"value\":[1]}",
	 ":9: limits: takes a table of keys, such as { key = value }"},
	{"an empty table", ALL ",{\"word\":\"limits\",\"line\":9,\"value\":[]}", ""},
	{"a table for profiles", ALL "," PLAIN("profiles", "9", "\"a\":\"b\""),
	 ":9: profiles: takes a list of texts, such as { \"a\", \"b\" }"},
};

static void mistakes_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		struct err err = {0};
		struct config c;
		char want[ERR_MSG_MAX + sizeof(PATH)];
		int rc = build(cases[i].entries, a, &c, &err);

		snprintf(want, sizeof(want), "%s%s", *cases[i].want ? PATH : "", cases[i].want);
		CHECK_STR(cases[i].label, want, err.msg);
		CHECK_INT(cases[i].label, *cases[i].want ? -1 : 0, rc);
		CHECK_INT(cases[i].label, *cases[i].want ? ERR_CONFIG : ERR_NONE, err.kind);
		arena_destroy(a);
	}
}

static void everything_arrives(void **state)
{
	static const char
		entries
			[] = PLAIN("log", "1",
				   "\"dir\":\"/var/log/"
				   "sp\",\"origin\":\"o\",\"reads_without_log\":false,\"flush_ms\":"
				   "7") "," NAMED("backend", "one", "2",
						  "\"kind\":\"docker\",\"address\":\"unix:///run/"
						  "e.sock\"") "," NAMED("backend", "two", "3",
									"\"kind\":\"docker\","
									"\"address\":\"unix:///run/"
									"f.sock\",\"files\":\"same_"
									"host\",\"group\":\"root\"") "," NAMED("identity", "ci", "4", "\"uid\":\"root\",\"profile\":\"p\"") "," NAMED("identity", "cd", "5", "\"gid\":7,\"profile\":\"q\",\"owner\":\"ci\"") "," NAMED("listener",
																																       "l",
																																       "6",
																																       "\"socket\":\"/run/sp/a.sock\",\"owner\":\"root\",\"group\":\"root\",\"mode\":"
																																       "\"0600\",\"backend\":\"two\",\"identities\":[\"cd\",\"ci\"],\"otherwise\":\"r\"") ",{\"word\":\"profiles\",\"line\":7,\"value\":[\"profiles\",\"/abs/x.lua\"]}"
																																											  ",{\"word\":\"profiles\",\"line\":8,\"value\":[\"more.lua\"]}," PLAIN("limits",
																																																				"9",
																																																				"\"workers\":3,\"body_bytes\":\"2MiB\",\"rule_time_ms\":9,\"bodies_bytes\":"
																																																				"4294967296") "," PLAIN("users",
																																																							"10",
																																																							"\"worker\":\"root\"");
	struct arena *a = arena_create(1 << 20);
	struct err err = {0};
	struct config c;

	(void)state;
	CHECK_INT(err.msg, 0, build(entries, a, &c, &err));
	CHECK_STR("dir", "/var/log/sp", c.auditor.dir);
	CHECK_STR("origin", "o", c.auditor.origin);
	CHECK_INT("flush", 7, c.auditor.flush_ms);
	CHECK_INT("reads", false, c.proxy.reads_without_log);
	CHECK_INT("backends", 2, c.proxy.backend_count);
	CHECK_STR("socket", "/run/e.sock", c.proxy.backends[0].socket);
	CHECK_INT("files", false, c.proxy.backends[0].sees_files);
	CHECK_INT("files", true, c.proxy.backends[1].sees_files);
	CHECK_INT("group", false, c.engines[0].has_gid);
	CHECK_INT("group", true, c.engines[1].has_gid);
	CHECK_INT("group", 0, c.engines[1].gid);
	CHECK_INT("uid by name", 0, c.proxy.identities[0].uid);
	CHECK_INT("has uid", true, c.proxy.identities[0].has_uid);
	CHECK_INT("has no gid", false, c.proxy.identities[0].has_gid);
	CHECK_STR("owner by default", "ci", c.proxy.identities[0].owner);
	CHECK_INT("gid", 7, c.proxy.identities[1].gid);
	CHECK_STR("owner", "ci", c.proxy.identities[1].owner);
	CHECK_INT("backend", 1, c.listeners[0].backend);
	CHECK_INT("order of identities", 1, c.listeners[0].identities[0]);
	CHECK_INT("order of identities", 0, c.listeners[0].identities[1]);
	CHECK_STR("otherwise", "r", c.listeners[0].otherwise);
	CHECK_INT("mode", 0600, c.access[0].mode);
	CHECK_INT("fd", -1, c.listeners[0].fd);
	CHECK_STR("profiles", "/etc/sallyport/profiles", c.profile_paths[0]);
	CHECK_STR("profiles", "/abs/x.lua", c.profile_paths[1]);
	CHECK_STR("profiles", "/etc/sallyport/more.lua", c.profile_paths[2]);
	CHECK_INT("profiles end", 1, c.profile_paths[3] == NULL);
	CHECK_INT("workers", 3, c.workers);
	CHECK_INT("body", 2 << 20, c.proxy.limits.body_bytes);
	CHECK_INT("bodies", 1LL << 32, c.proxy.limits.bodies_bytes);
	CHECK_INT("rule time", 9, c.proxy.rule_limits.time_ms);
	CHECK_INT("engine default", conf_default_limits.engine_ms, c.proxy.limits.engine_ms);
	CHECK_STR("worker user", "root", c.users.worker);
	CHECK_STR("auditor user", "sallyport-audit", c.users.auditor);
	CHECK_STR("status", "/run/sp/a.sock.status", c.status_socket);
	arena_destroy(a);
}

/* Each default that has a range is within it. */
static void defaults_are_in_range(void **state)
{
	const struct config_row *row;
	struct config c;

	(void)state;
	config_defaults(&c);
	for (size_t i = 0; (row = config_row_at(i)); i++) {
		uint64_t n = row->kind == KIND_NUMBER ? config_number(&c, row) : 0;

		if (row->kind != KIND_NUMBER || strcmp(row->key, "workers") == 0)
			continue;
		CHECK_INT(row->key, 1, n >= row->min && n <= row->max);
	}
}

static bool has(const char *const *list, const char *want)
{
	for (; *list; list++)
		if (strcmp(*list, want) == 0)
			return true;
	return false;
}

static void what_leads_around_is_protected(void **state)
{
	static const char *const want[] = {
		"/run/docker.sock",
		"/var/run/docker.sock",
		"/run/containerd",
		"/var/run/containerd",
		"/run/podman/podman.sock",
		"/var/lib/docker",
		"/run/docker",
		"/run/e.sock",
		"/var/run/e.sock",
		"/var/log/sp",
		PATH,
		"/run/sp/a.sock",
		"/run/sp",
		"/var/run/sp",
		"/run/sp/a.sock.status",
		"/etc/sallyport/profiles",
	};
	struct arena *a = arena_create(1 << 20);
	struct err err = {0};
	struct config c;

	(void)state;
	build(ALL ",{\"word\":\"profiles\",\"line\":7,\"value\":[\"profiles\"]}", a, &c, &err);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		CHECK_INT(want[i], true, has(c.proxy.protected_paths, want[i]));
	CHECK_INT("a shared folder", false, has(c.proxy.protected_paths, "/run"));
	arena_destroy(a);
}

/* What an own socket is, and by which names callers mean the engine's. */
static void own_sockets_arrive(void **state)
{
	static const char *const want[] = {"/var/run/docker.sock", "/run/docker.sock",
					   "/run/e.sock",          "/var/run/e.sock",
					   "/run/sp/a.sock",       "/var/run/sp/a.sock"};
	struct arena *a = arena_create(1 << 20);
	const struct conf_listener *l;
	struct err err = {0};
	struct config c;

	(void)state;
	CHECK_INT(err.msg, 0, build(OWN("\"as\":\"job\""), a, &c, &err));
	CHECK_STR("without one", "", c.proxy.identities[0].own_socket);
	CHECK_STR("with one", "/run/j/own.sock", c.proxy.identities[1].own_socket);
	CHECK_INT("where it leads", 0, c.proxy.identities[1].own_backend);
	l = &c.proxy.listeners[0];
	CHECK_INT("as", false, l->as_one);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		CHECK_INT(want[i], true, has(l->engine_names, want[i]));
	CHECK_INT("another's", false, has(l->engine_names, "/run/j/own.sock"));
	CHECK_INT("a folder", false, has(l->engine_names, "/run"));
	l = &c.proxy.listeners[1];
	CHECK_INT("as", true, l->as_one);
	CHECK_INT("who", 1, l->identities[0]);
	CHECK_INT("one", 1, l->identity_count);
	CHECK_INT("its own", true, has(l->engine_names, "/run/j/own.sock"));
	CHECK_INT("it is protected", true, has(c.proxy.protected_paths, "/run/j/own.sock"));
	arena_destroy(a);
}

/* A protected path that is reached through a link is known under its real name, too. */
static void real_names_are_protected(void **state)
{
	char dir[] = "/tmp/sallyport-test-XXXXXX", link[64], entries[2048], want[64];
	struct arena *a = arena_create(1 << 20);
	struct err err = {0};
	struct config c;

	(void)state;
	CHECK_INT("dir", 1, mkdtemp(dir) != NULL);
	snprintf(link, sizeof(link), "%s.link", dir);
	CHECK_INT("link", 0, symlink(dir, link));
	snprintf(entries, sizeof(entries),
		 LOG "," BACKEND "," IDENTITY
		     ",{\"word\":\"listener\",\"name\":\"l\",\"line\":4,\"value\":{\"socket\":\"%s/"
		     "new.sock\",\"identities\":[\"ci\"]}}",
		 link);
	CHECK_INT(err.msg, 0, build(entries, a, &c, &err));
	snprintf(want, sizeof(want), "%s/new.sock", dir);
	CHECK_INT(want, true, has(c.proxy.protected_paths, want));
	CHECK_INT(dir, true, has(c.proxy.protected_paths, dir));
	unlink(link);
	rmdir(dir);
	arena_destroy(a);
}

static void help_shows_every_key(void **state)
{
	const struct config_row *row;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	config_help(out);
	fclose(out);
	for (size_t i = 0; (row = config_row_at(i)); i++) {
		CHECK_INT(row->key, 1, strstr(text, row->key) != NULL);
		CHECK_INT(row->key, 1, strstr(text, row->doc) != NULL);
	}
	free(text);
}

/* Whoever asks keeps it where something else has been: what was found is nothing yet. */
static void an_address_is_all_that_is_known(void **state)
{
	struct arena *a = arena_create(4096);
	struct conf_tcp tcp;

	(void)state;
	memset(&tcp, 0xa5, sizeof(tcp));
	CHECK_INT("read", 0, config_address_tcp("tcp://127.0.0.1:2376", a, &tcp));
	CHECK_STR("host", "127.0.0.1", tcp.host);
	CHECK_INT("port", 2376, tcp.port);
	CHECK_INT("nothing was looked up", true, tcp.found == NULL);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(everything_arrives),
		cmocka_unit_test(defaults_are_in_range),
		cmocka_unit_test(own_sockets_arrive),
		cmocka_unit_test(what_leads_around_is_protected),
		cmocka_unit_test(real_names_are_protected),
		cmocka_unit_test(help_shows_every_key),
		cmocka_unit_test(an_address_is_all_that_is_known),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
