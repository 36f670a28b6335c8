#!/bin/sh
# cli.sh PROGRAM - what the verbs answer, and with which exit status: 0 yes, 1 no, 2 could not.
set -eu
program=$1 failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/sallyport-cli-XXXXXX")
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"
mkdir "$dir/profiles"
cat > "$dir/profiles/reader.lua" <<'END'
return profile "reader" { doc = "Reads.", operations = { "read" } }
END
cat > "$dir/gate.lua" <<END
log { dir = "$dir/log" }
profiles { "profiles" }
backend "engine" { kind = "docker", address = "unix://$dir/e.sock" }
listener "main" { socket = "$dir/g.sock", otherwise = "reader" }
END
cat > "$dir/facts.json" <<'END'
{ "info": { "Runtimes": {}, "SecurityOptions": [] }, "version": { "ApiVersion": "1.41", "MinAPIVersion": "1.12" } }
END
mkdir "$dir/machines"
cat > "$dir/machines/machine.lua" <<'END'
return profile "machine" { operations = { "container.run" }, isolation = { min = "vm" }, images = { "**" } }
END
cat > "$dir/machine.lua" <<END
log { dir = "$dir/log" }
profiles { "machines" }
backend "engine" { kind = "docker", address = "unix://$dir/e.sock" }
listener "main" { socket = "$dir/g.sock", otherwise = "machine" }
END
cat > "$dir/gvisor.json" <<'END'
{ "info": { "Runtimes": { "runc": { "path": "runc" }, "fast": { "path": "/usr/bin/runsc", "runtimeArgs": ["--network=host"] } },
	"DefaultRuntime": "runc", "SecurityOptions": ["name=seccomp,profile=default", "name=userns"] },
  "version": { "ApiVersion": "1.41", "MinAPIVersion": "1.12" },
  "images": { "reg.example/app:1": { "Id": "sha256:1111111111111111111111111111111111111111111111111111111111111111", "Config": {} } } }
END
body='{"Image":"reg.example/app:1","HostConfig":{"Runtime":"fast","Privileged":true}}'
printf 'POST /v1.41/containers/create HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: %s\n\n%s' ${#body} "$body" > "$dir/launch.http"
printf 'GET /_ping HTTP/1.1\nHost: x\n\n' > "$dir/read.http"
printf 'POST /v1.41/containers/prune HTTP/1.1\nHost: x\n\n' > "$dir/change.http"
echo "not JSON" > "$dir/bad.json"

# expect STATUS PATTERN ARGUMENTS...: stdout or stderr must hold PATTERN
expect() {
	want=$1 pattern=$2; shift 2
	status=0
	"$program" "$@" > "$dir/out" 2>&1 < /dev/null || status=$?
	if [ "$status" != "$want" ] || ! grep -q -e "$pattern" "$dir/out"; then
		echo "sallyport $*: status $status, not $want with '$pattern':"
		cat "$dir/out"
		failed=1
	fi
}

# What editors are told is what the program knows.
meta=$(dirname "$0")/../../../rules/meta/sallyport.lua
if ! "$program" profile types | diff "$meta" -; then
	echo "rules/meta/sallyport.lua is not what 'sallyport profile types' writes: make it anew"
	failed=1
fi

judged="--config $dir/gate.lua --listener main --facts $dir/facts.json"

expect 2 "usage: sallyport"
expect 0 "usage: sallyport" --help
expect 0 "usage: sallyport" help
expect 0 "^sallyport [0-9]" --version
expect 0 "^sallyport [0-9]" version
expect 2 "did you mean 'serve'" srve
expect 2 "'serve' needs --config FILE" serve
expect 0 "usage: sallyport audit verify" audit verify --help
expect 0 "connections_per_uid" help config
expect 0 "container.create *launch" help operations
expect 0 "audit_unavailable *503" help reasons
expect 0 "isolation" help settings
expect 0 "^identity.uid *INT" help facts
expect 0 "^workload.mounts\[\].source *STRING" help facts
expect 0 "^regex.match(pattern: string, s: string): boolean" help words
expect 0 "worker *accept4" help syscalls
expect 2 "did you mean 'reasons'" help reason
expect 2 "No such file" profile list --config "$dir/none.lua"

expect 0 "^reader " profile list --config "$dir/gate.lua"
expect 0 '"name":"reader"' profile list --json --config "$dir/gate.lua"
expect 0 "judged\|yes *system.ping" profile show reader --config "$dir/gate.lua"
expect 0 "^no *container.create" profile show reader --config "$dir/gate.lua"
expect 0 '"container.create":"no"' profile show reader --json --config "$dir/gate.lua"
expect 1 "did you mean 'reader'" profile show readr --config "$dir/gate.lua"
expect 2 "name a profile" profile show --config "$dir/gate.lua"

expect 0 '"verdict":"allow"' check $judged "$dir/read.http"
expect 1 '"verdict":"deny"' check $judged "$dir/change.http"
expect 1 '"verdict":"allow"' check $judged "$dir/read.http" "$dir/change.http"
expect 2 "name a file" check $judged
expect 2 "No such file" check $judged "$dir/none.http"
expect 2 "bad.json" check --config "$dir/gate.lua" --listener main --facts "$dir/bad.json" "$dir/read.http"
expect 2 "other" check --config "$dir/gate.lua" --listener other --facts "$dir/facts.json" "$dir/read.http"
expect 1 "container.prune" explain $judged "$dir/change.http"

# Where the isolation comes from, line by line; and plainly, if nothing here reaches what is asked for.
machine="--config $dir/machine.lua --listener main --facts $dir/gvisor.json"
expect 1 "base     kernel: runtime 'fast': its path is /usr/bin/runsc: runsc: gVisor: .* (gVisor: Security Model)" explain $machine "$dir/launch.http"
expect 1 "lowered  Runtimes.fast.network = host: the host's network stack is used (gVisor: .*); process is left" explain $machine "$dir/launch.http"
expect 1 "lowered  HostConfig.Privileged = true: .*; none is left" explain $machine "$dir/launch.http"
expect 1 "adds     user ids are mapped: .*; the level stays" explain $machine "$dir/launch.http"
expect 1 "result   none" explain $machine "$dir/launch.http"
expect 1 "No runtime of this backend reaches vm: runc is process, fast is process" explain $machine "$dir/launch.http"
expect 1 "No runtime of this backend reaches vm: runc is process, fast is process" check $machine "$dir/launch.http"

expect 4 "give the log's folder" audit verify
expect 4 "not both" audit verify "$dir" --config "$dir/gate.lua"
expect 4 "LOG;SEQ;HASH" audit verify "$dir" --anchor "x;y;z"
expect 4 "unreadable" audit verify "$dir/none"
expect 2 "give the log's folder" audit tail
expect 1 "not running" status --config "$dir/gate.lua"
expect 1 "g.sock" health --config "$dir/gate.lua"
expect 2 "no listener is called 'man'.*did you mean 'main'" health --config "$dir/gate.lua" --listener man
expect 2 "name a listener, with --listener NAME: main" explain --config "$dir/gate.lua" "$dir/read.http"
expect 2 "no listener is called 'man'; there are: main" check --config "$dir/gate.lua" --listener man "$dir/read.http"
expect 2 "has no identity 'zoe'; it has: " check --config "$dir/gate.lua" --listener main --identity zoe "$dir/read.http"
expect 0 "backend engine: .*e.sock: No such file.*is not known" explain --config "$dir/gate.lua" --listener main "$dir/read.http"
expect 1 "e.sock: No such file" doctor --config "$dir/gate.lua"
expect 1 '"level":"weak"' doctor --json --config "$dir/gate.lua"
# explain -- CLIENT ...: what the client asks for is caught, and judged; nothing reaches an engine.
cat > "$dir/client.py" <<'END'
import http.client, json, os, socket, sys
class Engine(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["DOCKER_HOST"].removeprefix("unix://"))
engine = Engine("x")
def ask(method, path, body=None):
    engine.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"} if body else {})
    reply = engine.getresponse()
    return reply.status, reply.read()
for step in sys.argv[1:]:
    if step == "ping":
        assert ask("HEAD", "/_ping")[0] == 200 and ask("GET", "/v1.41/version")[0] == 200
    elif step == "list":
        assert ask("GET", "/v1.41/containers/json?all=1") == (200, b"[]")
    elif step == "run":
        ask("POST", "/v1.41/containers/create", {"Image": "alpine", "HostConfig": {"Privileged": True}})
        ask("POST", "/v1.41/containers/prune")  # nobody answers any more
    elif step == "hang":
        engine.connect(); engine.sock.recv(1)
END
expect 0 "GET /v1.41/containers/json" explain $judged -- python3 "$dir/client.py" ping list
expect 1 "container.create (launch)" explain $judged -- python3 "$dir/client.py" ping list run
if grep -q prune "$dir/out"; then echo "a client goes on after it was refused"; failed=1; fi
expect 2 "asked the engine for nothing" explain $judged -- python3 "$dir/client.py" ping
expect 2 "cannot be run: is it installed" explain $judged -- "$dir/no-client" run
expect 2 "No such file" check $judged -- "$dir/no-request"
# Signed bundles of rules.
expect 0 "rules { signed = true, keys" bundle key acme --out "$dir/acme.key"
public=$(sed -n 's/.*keys = { "\(.*\)" } }/\1/p' "$dir/out")
expect 2 "File exists" bundle key acme --out "$dir/acme.key"
expect 2 "without '+' and spaces" bundle key "a b" --out "$dir/none.key"
expect 0 "1 files" bundle build --key "$dir/acme.key" --out "$dir/rules.bundle" --author ann --ticket SEC-1 "$dir/profiles"
expect 0 "^author *ann" bundle verify --key "$public" "$dir/rules.bundle"
expect 0 '"ticket":"SEC-1"' bundle verify --json --key "$public" "$dir/rules.bundle"
sed 's/operations/operationz/' "$dir/rules.bundle" > "$dir/changed.bundle"
expect 1 "reader.lua is not what was signed" bundle verify --key "$public" "$dir/changed.bundle"
expect 2 "no public key" bundle verify --key "$dir/acme.key" "$dir/rules.bundle"
mkdir "$dir/wrong"; echo 'return profile "x" { operations = { "reed" } }' > "$dir/wrong/x.lua"
expect 2 "reed" bundle build --key "$dir/acme.key" --out "$dir/wrong.bundle" "$dir/wrong"
expect 2 "holds no secret key" bundle build --key "$dir/profiles/reader.lua" --out "$dir/wrong.bundle" "$dir/profiles"
sed -e "s|profiles { \"profiles\" }|rules { signed = true, keys = { \"$public\" } }; profiles { \"rules.bundle\" }|" "$dir/gate.lua" > "$dir/signed.lua"
expect 0 "^reader " profile list --config "$dir/signed.lua"
sed -e 's|rules.bundle|changed.bundle|' "$dir/signed.lua" > "$dir/unsigned.lua"
expect 2 "is not what was signed" profile list --config "$dir/unsigned.lua"

[ -z "$(find "$dir" -name 'sallyport-??????')" ] || { echo "a socket is left behind"; failed=1; }

exit $failed
