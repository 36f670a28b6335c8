/* Which container a caller runs in, by what an engine answers; hostile answers, too. */
#include "backends/backend.h"
#include "backends/docker/networks_priv.h"
#include "tests/unit/check.h"

#include <stdio.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define N "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define M "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

#define NETWORK(id, driver, subnet, gateway)                                                       \
	"{\"Id\":\"" id "\",\"Driver\":\"" driver "\",\"Scope\":\"local\",\"IPAM\":{\"Config\":["  \
	"{\"Subnet\":\"" subnet "\",\"Gateway\":\"" gateway "\"}]}}"
#define EDGE     NETWORK(N, "bridge", "172.30.0.0/24", "172.30.0.1")
#define EDGE_ONE "{\"Id\":\"" N "\",\"Containers\":{\"" A "\":{\"IPv4Address\":\"172.30.0.5/24\"}}}"

#define SAYS(id, pid, started, owner, address)                                                     \
	"{\"Id\":\"" id "\",\"Name\":\"/web\",\"Image\":\"sha256:" M "\",\"State\":{\"Running\":"  \
	"true,\"Pid\":" pid ",\"StartedAt\":\"" started "\"},\"Config\":{\"Image\":\"app:1\","     \
	"\"Labels\":{\"role\":\"proxy\",\"inherited\":\"x\",\"secret\":\"s\"" owner "}},"          \
	"\"NetworkSettings\":{\"Networks\":{\"edge\":{\"NetworkID\":\"" N                          \
	"\",\"IPAddress\":\"" address "\"}}}}"
#define MANY_15                                                                                    \
	",\"many.1\":\"\",\"many.2\":\"\",\"many.3\":\"\",\"many.4\":\"\",\"many.5\":\"\",\"many." \
	"6\":"                                                                                     \
	"\"\",\"many.7\":\"\",\"many.8\":\"\",\"many.9\":\"\",\"many.10\":\"\",\"many.11\":\"\","  \
	"\"many.12\":\"\",\"many.13\":\"\",\"many.14\":\"\",\"many.15\":\"\""
#define LONG_64  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_512 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 LONG_64
#define CUT      "the container has more labels, or longer ones, than are shown of a caller"
#define THEN     "2026-01-01T00:00:00.123456789Z"
#define WEB      SAYS(A, "77", THEN, "", "172.30.0.5")
#define OF_IMAGE                                                                                   \
	"{\"Id\":\"sha256:" M "\",\"Config\":{\"Labels\":{\"inherited\":\"x\",\"role\":\"other\"}" \
	"}}"

struct answer {
	const char *target; /* where it must be asked for */
	int status;
	const char *body;
};

struct row {
	const char *name;
	const char *ids[3];
	const char *peer, *own;
	struct answer answers[5];
	const char *want; /* "name owner labels", or why it is not known */
};

static const struct row rows[] = {
	{"by id",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, WEB}, {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 '' role=proxy"},
	{"the outer one is another engine's",
	 {B, A},
	 NULL,
	 NULL,
	 {{"/containers/" B "/json", 404, "{}"},
	  {"/containers/" A "/json", 200, WEB},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 '' role=proxy"},
	{"another engine's",
	 {B},
	 NULL,
	 NULL,
	 {{"/containers/" B "/json", 404, "{}"}},
	 "the engine knows no such container"},
	{"made through the gate",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   SAYS(A, "77", THEN, ",\"sallyport.owner\":\"ci\"", "172.30.0.5")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 'ci' role=proxy"},
	{"of an image that was built through it",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   SAYS(A, "77", THEN, ",\"sallyport.image.owner\":\"ci\",\"sallyport.owner\":\"\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 'ci' role=proxy"},
	{"marked in another way",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   SAYS(A, "77", THEN, ",\"sallyport.decision\":\"01\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 'unknown' role=proxy"},
	{"as many labels as are shown",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", THEN, MANY_15, "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 '' role=proxy many.1= many.2= many.3= many.4= many.5= many.6= many.7= many.8= "
	 "many.9= many.10= many.11= many.12= many.13= many.14= many.15="},
	{"one label more",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", THEN, MANY_15 ",\"many.16\":\"\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 CUT},
	{"more labels that are not shown",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", THEN, MANY_15 ",\"other\":\"\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 '' role=proxy many.1= many.2= many.3= many.4= many.5= many.6= many.7= many.8= "
	 "many.9= many.10= many.11= many.12= many.13= many.14= many.15="},
	{"a value that is too long to be shown",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", THEN, ",\"many.1\":\"" LONG_512 "x\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 CUT},
	{"a label that is no text",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", THEN, ",\"many.1\":7", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 CUT},
	{"a name that is too long to be shown",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   SAYS(A, "77", THEN, ",\"many." LONG_64 LONG_64 "\":\"\"", "")},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 CUT},
	{"labels that are a list",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   "{\"Id\":\"" A "\",\"Name\":\"/web\",\"Image\":\"sha256:" M
	   "\",\"Config\":{\"Image\":\"a\",\"Labels\":[\"role\"]},"
	   "\"State\":{\"Running\":true,\"Pid\":77,\"StartedAt\":\"" THEN "\"}}"}},
	 "the engine does not say which labels the container has"},
	{"another answers",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(B, "77", THEN, "", "")}},
	 "the engine answers with another container"},
	{"nothing answers",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 0, ""}},
	 "the engine gave no answer"},
	{"it does not run",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200,
	   "{\"Id\":\"" A "\",\"Name\":\"/web\",\"Image\":\"sha256:" M
	   "\",\"Config\":{\"Image\":\"a\"},"
	   "\"State\":{\"Running\":false,\"Pid\":0,\"StartedAt\":\"" THEN "\"}}"}},
	 "the container does not run"},
	{"a time that is none",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, SAYS(A, "77", "yesterday", "", "")}},
	 "the engine does not say when the container was started"},
	{"no object",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, "[]"}},
	 "the engine answers with another container"},
	{"the image is another",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, WEB},
	  {"/images/sha256:" M "/json", 200, "{\"Id\":\"sha256:" N "\"}"}},
	 "the engine answers with another image"},
	{"the image is gone",
	 {A},
	 NULL,
	 NULL,
	 {{"/containers/" A "/json", 200, WEB}, {"/images/sha256:" M "/json", 404, "{}"}},
	 "the engine does not know its image"},
	{"an id that is none",
	 {"../x"},
	 NULL,
	 NULL,
	 {{NULL, 0, NULL}},
	 "its control groups name no container"},
	{"by address",
	 {NULL},
	 "172.30.0.5",
	 "172.30.0.1",
	 {{"/networks", 200, "[" EDGE "," NETWORK(M, "bridge", "172.17.0.0/16", "172.17.0.1") "]"},
	  {"/networks/" N, 200, EDGE_ONE},
	  {"/containers/" A "/json", 200, WEB},
	  {"/images/sha256:" M "/json", 200, OF_IMAGE}},
	 "web 77 '' role=proxy"},
	{"started after the connection",
	 {NULL},
	 "172.30.0.5",
	 "172.30.0.1",
	 {{"/networks", 200, "[" EDGE "]"},
	  {"/networks/" N, 200, EDGE_ONE},
	  {"/containers/" A "/json", 200, SAYS(A, "77", "2026-01-02T00:00:00Z", "", "172.30.0.5")}},
	 "the container was started after the connection was made"},
	{"it has another address by now",
	 {NULL},
	 "172.30.0.5",
	 "172.30.0.1",
	 {{"/networks", 200, "[" EDGE "]"},
	  {"/networks/" N, 200, EDGE_ONE},
	  {"/containers/" A "/json", 200, SAYS(A, "77", THEN, "", "172.30.0.6")}},
	 "the container has another address by now"},
	{"nobody has the address",
	 {NULL},
	 "172.30.0.9",
	 "172.30.0.1",
	 {{"/networks", 200, "[" EDGE "]"}, {"/networks/" N, 200, EDGE_ONE}},
	 "no container, or more than one, has the caller's address"},
	{"another network answers",
	 {NULL},
	 "172.30.0.5",
	 "172.30.0.1",
	 {{"/networks", 200, "[" EDGE "]"}, {"/networks/" N, 200, "{\"Id\":\"" M "\"}"}},
	 "the engine answers with another network"},
};

static void write_labels(const struct caller_container *c, char *out, size_t size)
{
	for (size_t i = 0; i < c->label_count; i++) {
		size_t used = strlen(out);

		snprintf(out + used, size - used, " %s=%s", c->labels[i].name, c->labels[i].value);
	}
}

static void run(const struct row *row)
{
	static const char *const shown[] = {"role", "inherited", "many.*", NULL};
	const struct backend_ops *ops = backend_find("docker");
	const struct backend_conf conf = {.name = "engine"};
	struct err err = {0};
	struct backend *be = ops->open(&conf, &err);
	struct caller_call call = {.arena = arena_create(1 << 20),
				   .peer = row->peer,
				   .own = row->own,
				   .labels = shown,
				   /* 2026-01-01T12:00:00Z */
				   .since_ns = INT64_C(1767268800) * 1000000000};
	enum step step;
	char got[512] = "";
	size_t n = 0;

	while (row->ids[call.id_count]) {
		call.ids[call.id_count] = row->ids[call.id_count];
		call.id_count++;
	}
	while ((step = ops->caller(be, &call)) == STEP_LOOKUP) {
		const struct answer *a = &row->answers[n++];
		enum jv_fault fault;

		CHECK_STR(row->name, a->target ? a->target : "nothing more", call.lookup.target);
		call.lookup.status = a->status;
		if (a->status)
			assert_int_equal(0, jv_parse(call.arena, span_of(a->body),
						     &call.lookup.body, &fault, &err));
	}
	if (step == STEP_READY) {
		snprintf(got, sizeof(got), "%s %d '%s'", call.found.name, (int)call.init,
			 call.found.owner);
		write_labels(&call.found, got, sizeof(got));
	}
	CHECK_STR(row->name, row->want, step == STEP_READY ? got : call.why);
	CHECK_INT(row->name, row->answers[0].status == 0 && row->answers[0].target, call.trouble);
	arena_destroy(call.arena);
	ops->close(be);
}

static void callers_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		run(&rows[i]);
}

static void networks_must_be_one(void **state)
{
	static const struct {
		const char *name, *networks, *peer, *own;
		bool want;
	} cases[] = {
		{"the gateway's", "[" EDGE "]", "172.30.0.5", "172.30.0.1", true},
		{"IPv4 in the clothes of IPv6", "[" EDGE "]", "::ffff:172.30.0.5",
		 "::ffff:172.30.0.1", true},
		{"IPv6", "[" NETWORK(N, "bridge", "fd00:1::/64", "fd00:1::1") "]", "fd00:1::5",
		 "fd00:1::1", true},
		{"our address is not the gateway", "[" EDGE "]", "172.30.0.5", "172.30.0.2", false},
		{"the caller is of another network", "[" EDGE "]", "172.31.0.5", "172.30.0.1",
		 false},
		{"the host itself", "[" EDGE "]", "172.30.0.1", "172.30.0.1", false},
		{"macvlan", "[" NETWORK(N, "macvlan", "172.30.0.0/24", "172.30.0.1") "]",
		 "172.30.0.5", "172.30.0.1", false},
		{"two with the same subnet",
		 "[" EDGE "," NETWORK(M, "bridge", "172.30.0.0/24", "172.30.0.1") "]", "172.30.0.5",
		 "172.30.0.1", false},
		{"a macvlan beside it",
		 "[" EDGE "," NETWORK(M, "macvlan", "172.30.0.0/16", "172.30.255.1") "]",
		 "172.30.0.5", "172.30.0.1", false},
		{"a subnet that is none",
		 "[" NETWORK(N, "bridge", "172.30.0.0/33", "172.30.0.1") "]", "172.30.0.5",
		 "172.30.0.1", false},
		{"an id that is none",
		 "[" NETWORK("../x", "bridge", "172.30.0.0/24", "172.30.0.1") "]", "172.30.0.5",
		 "172.30.0.1", false},
		{"nothing", "[]", "172.30.0.5", "172.30.0.1", false},
		{"no list", "{}", "172.30.0.5", "172.30.0.1", false},
		{"odd addresses", "[" EDGE "]", "172.30.0", "x", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		struct err err = {0};
		enum jv_fault fault;
		struct jv tree;
		const char *why = NULL, *got;

		assert_int_equal(0, jv_parse(a, span_of(cases[i].networks), &tree, &fault, &err));
		got = docker_network_of(&tree, cases[i].peer, cases[i].own, &why);
		CHECK_STR(cases[i].name, cases[i].want ? N : "", got ? got : "");
		CHECK_INT(cases[i].name, 1, got || why);
		arena_destroy(a);
	}
}

static void an_address_is_of_one(void **state)
{
	static const struct {
		const char *name, *network;
		bool want;
	} cases[] = {
		{"one", EDGE_ONE, true},
		{"two",
		 "{\"Containers\":{\"" A "\":{\"IPv4Address\":\"172.30.0.5/24\"},\"" B
		 "\":{\"IPv4Address\":\"172.30.0.5/24\"}}}",
		 false},
		{"an endpoint that is no container",
		 "{\"Containers\":{\"ep-1\":{\"IPv4Address\":\"172.30.0.5/24\"}}}", false},
		{"none", "{\"Containers\":{}}", false},
		{"no list", "{}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		struct err err = {0};
		enum jv_fault fault;
		struct jv tree;
		const char *got;

		assert_int_equal(0, jv_parse(a, span_of(cases[i].network), &tree, &fault, &err));
		got = docker_container_at(&tree, "172.30.0.5");
		CHECK_STR(cases[i].name, cases[i].want ? A : "", got ? got : "");
		arena_destroy(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_are_found),
		cmocka_unit_test(networks_must_be_one),
		cmocka_unit_test(an_address_is_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
