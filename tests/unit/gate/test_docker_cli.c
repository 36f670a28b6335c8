#include "gate/docker_cli.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

/* The words of a command line, which holds no blanks within words. */
static struct jv words_of(struct arena *a, const char *line)
{
	struct span rest = span_of(line), word;
	struct jv words = jv_array();

	while (rest.len) {
		span_cut(&rest, ' ', &word);
		jv_push(a, &words,
			jv_span((struct span){arena_strndup(a, word.at, word.len), word.len}));
	}
	return words;
}

/*
 * What Docker's own client sends for these, but for what it says of terminals
 * (AttachStdin and its like, ConsoleSize) and values that mean nothing.
 */
static void renders_what_docker_sends(void **state)
{
	static const struct {
		const char *label, *line, *target, *body;
	} rows[] = {
		{"what a container would be",
		 "create -it -u 1000:1000 -e A=b -v /srv/ws:/w:ro -v /data --cap-add NET_ADMIN "
		 "--cap-drop ALL --privileged --network agents --pid host --ipc=host alpine id -u",
		 "/v1.43/containers/create",
		 "{\"OpenStdin\":true,\"Tty\":true,\"User\":\"1000:1000\",\"Env\":[\"A=b\"],"
		 "\"HostConfig\":{\"Binds\":[\"/srv/ws:/"
		 "w:ro\"],\"CapAdd\":[\"NET_ADMIN\"],\"CapDrop\":[\"ALL\"],\"Privileged\":true,"
		 "\"NetworkMode\":\"agents\",\"PidMode\":\"host\",\"IpcMode\":\"host\"},"
		 "\"Volumes\":{\"/"
		 "data\":{}},\"NetworkingConfig\":{\"EndpointsConfig\":{\"agents\":{}}},\"Image\":"
		 "\"alpine\",\"Cmd\":[\"id\",\"-u\"]}"},
		{"ports, each in its form",
		 "run -p 127.0.0.1:80:8080 -p 53:53/udp -p [::1]:9:9 -p 7 alpine",
		 "/v1.43/containers/create",
		 "{\"HostConfig\":{\"PortBindings\":{\"8080/"
		 "tcp\":[{\"HostIp\":\"127.0.0.1\",\"HostPort\":\"80\"}],\"53/"
		 "udp\":[{\"HostIp\":\"\",\"HostPort\":\"53\"}],\"9/"
		 "tcp\":[{\"HostIp\":\"::1\",\"HostPort\":\"9\"}],\"7/"
		 "tcp\":[{\"HostIp\":\"\",\"HostPort\":\"\"}]}},\"ExposedPorts\":{\"8080/"
		 "tcp\":{},\"53/udp\":{},\"9/tcp\":{},\"7/tcp\":{}},\"Image\":\"alpine\"}"},
		{"resources",
		 "run --memory 512m --memory-swap 1g --cpus 1.5 --pids-limit 64 --shm-size 64m "
		 "--oom-kill-disable alpine",
		 "/v1.43/containers/create",
		 "{\"HostConfig\":{\"Memory\":536870912,\"MemorySwap\":1073741824,\"NanoCpus\":"
		 "1500000000,\"PidsLimit\":64,\"ShmSize\":67108864,\"OomKillDisable\":true},"
		 "\"Image\":\"alpine\"}"},
		{"mounts",
		 "run --mount type=bind,src=/a,dst=/b,readonly --mount type=tmpfs,dst=/t --mount "
		 "dst=/v --tmpfs /tmp:size=8m alpine",
		 "/v1.43/containers/create",
		 "{\"HostConfig\":{\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/a\",\"Target\":\"/"
		 "b\",\"ReadOnly\":true},{\"Type\":\"tmpfs\",\"Target\":\"/t\"},{\"Target\":\"/"
		 "v\",\"Type\":\"volume\"}],\"Tmpfs\":{\"/"
		 "tmp\":\"size=8m\"}},\"Image\":\"alpine\"}"},
		{"the host's parts",
		 "run --device /dev/kvm --device /dev/a:/dev/b:r --gpus all --device-cgroup-rule=x "
		 "--sysctl net.x=1 --security-opt no-new-privileges --userns host --uts host "
		 "--cgroup-parent x alpine",
		 "/v1.43/containers/create",
		 "{\"HostConfig\":{\"Devices\":[{\"PathOnHost\":\"/dev/"
		 "kvm\",\"PathInContainer\":\"/dev/"
		 "kvm\",\"CgroupPermissions\":\"rwm\"},{\"PathOnHost\":\"/dev/"
		 "a\",\"PathInContainer\":\"/dev/"
		 "b\",\"CgroupPermissions\":\"r\"}],\"DeviceRequests\":[{\"Count\":-1,"
		 "\"Capabilities\":[[\"gpu\"]]}],\"DeviceCgroupRules\":[\"x\"],\"Sysctls\":{\"net."
		 "x\":\"1\"},\"SecurityOpt\":[\"no-new-privileges\"],\"UsernsMode\":\"host\","
		 "\"UTSMode\":\"host\",\"CgroupParent\":\"x\"},\"Image\":\"alpine\"}"},
		{"the rest",
		 "docker run -d --rm --read-only --init --label a=b --entrypoint sh -w/x --runtime "
		 "runsc --restart on-failure:3 --add-host h:1.2.3.4 --dns 1.1.1.1 --group-add 5 "
		 "-hhost --volumes-from other --log-driver json-file --log-opt max-size=1m --net "
		 "none --name n -- alpine",
		 "/v1.43/containers/create?name=n",
		 "{\"HostConfig\":{\"AutoRemove\":true,\"ReadonlyRootfs\":true,\"Init\":true,"
		 "\"Runtime\":\"runsc\",\"RestartPolicy\":{\"Name\":\"on-failure\","
		 "\"MaximumRetryCount\":3},\"ExtraHosts\":[\"h:1.2.3.4\"],\"Dns\":[\"1.1.1.1\"],"
		 "\"GroupAdd\":[\"5\"],\"VolumesFrom\":[\"other\"],\"LogConfig\":{\"Type\":\"json-"
		 "file\",\"Config\":{\"max-size\":\"1m\"}},\"NetworkMode\":\"none\"},\"Labels\":{"
		 "\"a\":\"b\"},\"Entrypoint\":[\"sh\"],\"WorkingDir\":\"/"
		 "x\",\"Hostname\":\"host\",\"Image\":\"alpine\"}"},
		{"a command in a container", "exec -it -u 0 -e A=b -w /x --privileged c1 sh -c id",
		 "/v1.43/containers/c1/exec",
		 "{\"AttachStdin\":true,\"Tty\":true,\"User\":\"0\",\"Env\":[\"A=b\"],"
		 "\"WorkingDir\":\"/"
		 "x\",\"Privileged\":true,\"Cmd\":[\"sh\",\"-c\",\"id\"],\"AttachStderr\":true,"
		 "\"AttachStdout\":true}"},
		{"a pull", "pull alpine", "/v1.43/images/create?fromImage=alpine&tag=latest", ""},
		{"a pull of a tag", "pull reg.example:5000/x/y:1",
		 "/v1.43/images/create?fromImage=reg.example%3A5000%2Fx%2Fy&tag=1", ""},
		{"a pull by digest", "pull alpine@sha256:ab",
		 "/v1.43/images/create?fromImage=alpine&tag=sha256%3Aab", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 20);
		struct jv words = words_of(a, rows[i].line);
		struct err err = {0};
		struct buf out;
		char first[512];
		const char *body;

		buf_init(&out, 1 << 20);
		CHECK_INT(rows[i].label, 0, docker_cli_request(&words, a, &out, &err));
		buf_put(&out, "", 1);
		snprintf(first, sizeof(first), "POST %s HTTP/1.1\r\n", rows[i].target);
		CHECK_INT(rows[i].label, 0, strncmp(buf_span(&out).at, first, strlen(first)));
		body = strstr(buf_span(&out).at, "\r\n\r\n");
		assert_non_null(body);
		CHECK_STR(rows[i].label, rows[i].body, body + 4);
		buf_fini(&out);
		arena_destroy(a);
	}
}

/* What cannot be rendered whole is not rendered at all. */
static void refuses_what_it_does_not_know(void **state)
{
	static const struct {
		const char *line, *want;
	} rows[] = {
		{"run --blkio-weight 5 alpine", "--blkio-weight"},
		{"run -Z alpine", "-Z"},
		{"run --memory much alpine", "--memory takes a size"},
		{"run --cpus x alpine", "--cpus takes"},
		{"run --pids-limit x alpine", "--pids-limit takes"},
		{"run -p 80-90:80-90 alpine", "--publish takes"},
		{"run --mount type=bind,volume-opt=x alpine", "volume-opt"},
		{"run --user", "needs a value"},
		{"run", "names no image"},
		{"exec c1", "names no container and command"},
		{"pull", "names no single image"},
		{"pull a b", "names no single image"},
		{"rm c1", "not 'rm'"},
		{"docker", "names no verb"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 20);
		struct jv words = words_of(a, rows[i].line);
		struct err err = {0};
		struct buf out;

		buf_init(&out, 1 << 20);
		CHECK_INT(rows[i].line, -1, docker_cli_request(&words, a, &out, &err));
		CHECK_INT(err.msg, 1, strstr(err.msg, rows[i].want) != NULL);
		buf_fini(&out);
		arena_destroy(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(renders_what_docker_sends),
		cmocka_unit_test(refuses_what_it_does_not_know),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
