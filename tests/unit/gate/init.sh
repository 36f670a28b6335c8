#!/bin/sh
# init.sh PROGRAM - what `sallyport init` writes loads, is judged by, and is never written over something.
set -eu
program=$1 failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/sallyport-init-XXXXXX")
trap 'rm -rf "$dir"' EXIT
complain() { echo "$1"; failed=1; }
cat > "$dir/facts.json" <<'END'
{ "info": { "Runtimes": { "runc": { "path": "runc" } }, "DefaultRuntime": "runc", "SecurityOptions": ["name=seccomp,profile=default"] },
  "version": { "ApiVersion": "1.41", "MinAPIVersion": "1.12" },
  "images": { "nginx": { "Id": "sha256:aa", "RepoTags": ["nginx:latest"], "Config": {}, "RepoDigests": ["nginx@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"] } },
  "containers": { "web": { "Id": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "Name": "/web", "Config": { "Labels": {} } } } }
END

# judged FOLDER LISTENER REQUEST-LINE: the verdict
judged() {
	printf '%s HTTP/1.1\nHost: x\n\n' "$3" > "$dir/request"
	"$program" check --config "$1/sallyport.conf" --listener "$2" --facts "$dir/facts.json" "$dir/request" |
		sed 's/.*"verdict":"\([a-z]*\)".*/\1/'
}
expect() { # WANT FOLDER LISTENER REQUEST-LINE
	found=$(judged "$2" "$3" "$4") || :
	[ "$found" = "$1" ] || complain "$2, $3: '$4' gives '$found', not '$1'"
}

# Every client: all of them load side by side, without an error of lint.
all=$("$program" help clients | sed 's/ .*//' | tr '\n' ',')
"$program" init --for "${all%,}" --dir "$dir/all" > "$dir/out" || complain "init --for ${all%,} fails"
"$program" lint "$dir/all/profiles" > "$dir/lint" || :   # warnings are theirs to have
grep -q "^0 errors" "$dir/lint" || complain "$(cat "$dir/lint")"
[ "$("$program" profile list --config "$dir/all/sallyport.conf" | wc -l)" = \
  "$("$program" help clients | wc -l)" ] || complain "not every client's profile is loaded"
for client in $("$program" help clients | sed 's/ .*//'); do
	grep -q "^listener \"$client\" " "$dir/all/sallyport.conf" || complain "no listener for $client"
	grep -q -e "^  $client:" -e "^# $client runs on the host: " "$dir/all/compose.yaml" || complain "compose.yaml lacks $client"
done
expect allow "$dir/all" traefik "GET /v1.41/containers/json"
expect deny "$dir/all" traefik "GET /v1.41/images/json"
expect deny "$dir/all" docker-cli-read "GET /v1.41/containers/web/logs?stdout=1"
expect allow "$dir/all" dozzle "GET /v1.41/containers/web/logs?stdout=1"
# The admin socket is in no folder that a container gets, and doctor sees one that is.
grep -q '^admin .*socket = "/run/sallyport/admin.sock"' "$dir/all/sallyport.conf" || complain "where is the admin socket?"
grep -q "/run/sallyport:" "$dir/all/compose.yaml" && complain "a container gets the folder of the admin socket"
"$program" doctor --config "$dir/all/sallyport.conf" > "$dir/out" || :
grep -q "the admin socket .* lies in the folder" "$dir/out" && complain "$(cat "$dir/out")"
sed '/^admin /d' "$dir/all/sallyport.conf" > "$dir/all/beside.conf"
"$program" doctor --config "$dir/all/beside.conf" > "$dir/out" || :
grep -q "the admin socket .* lies in the folder of listener" "$dir/out" || complain "doctor says nothing of a container's admin socket"

# What a refusal says to do is in the words of who must do it.
body='{"Image":"nginx","HostConfig":{"NanoCpus":9000000000,"Binds":["/home/x:/y"]}}'
printf 'POST /v1.41/containers/create HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: %d\n\n%s' ${#body} "$body" > "$dir/request"
"$program" check --config "$dir/all/sallyport.conf" --listener docker-cli-dev --facts "$dir/facts.json" "$dir/request" > "$dir/out" || :
grep -q "Ask for at most 4 processors" "$dir/out" || complain "$(cat "$dir/out")"
grep -q "/home/{identity.name}/src is for callers of whom that is known" "$dir/out" || complain "$(cat "$dir/out")"
grep -q 'own_socket = "testcontainers-own"' "$dir/all/sallyport.conf" || complain "Ryuk gets no socket"

# A long way to the folder is no other folder.
long=$dir/$(printf '%0200d' 1)/$(printf '%0200d' 2)/$(printf '%0200d' 3)
mkdir -p "$(dirname "$long")"
"$program" init --for traefik --dir "$long" > "$dir/out" 2>&1 || complain "$(cat "$dir/out")"
"$program" profile list --config "$long/sallyport.conf" > "$dir/out" 2>&1 || complain "$(cat "$dir/out")"

# Nothing is written over; nobody is guessed.
"$program" init --for traefik --dir "$dir/all" > "$dir/out" 2>&1 && complain "an old folder is written into"
grep -q "new folder" "$dir/out" || complain "$(cat "$dir/out")"
for wrong in "--for trefik" "--for traefik,traefik" "--for ," "--for traefik --from-env" ""; do
	"$program" init $wrong --dir "$dir/wrong" > "$dir/out" 2>&1 && complain "init $wrong is taken"
	[ ! -e "$dir/wrong" ] || complain "init $wrong leaves something behind"
done
"$program" init --for trefik --dir "$dir/wrong" 2>&1 | grep -q "did you mean 'traefik'" || complain "no hint"

# Each variable by itself, with and without POST, gives a profile that loads.
source=$(dirname "$0")/../../../gate/init_env.def
names=$(sed -n 's/^\(VARIABLE\|SWITCH\)("\([A-Z_]*\)".*/\2/p' "$source")
for name in $names; do
	for post in 0 1; do
		env "$name=1" "POST=$post" "$program" init --from-env --dir "$dir/env-$name-$post" > "$dir/out"
		"$program" profile list --config "$dir/env-$name-$post/sallyport.conf" > "$dir/out" ||
			complain "$name=1 POST=$post does not load"
		grep -q -- "-- $name=1" "$dir/env-$name-$post/profiles/from-env.lua" || [ "$name-$post" = BUILD-0 ] ||
			[ "$name-$post" = COMMIT-0 ] || [ "$name-$post" = AUTH-0 ] || complain "$name=1 is not told of"
	done
done
expect allow "$dir/env-CONTAINERS-0" from-env "GET /v1.41/containers/json"
expect deny "$dir/env-CONTAINERS-0" from-env "POST /v1.41/containers/web/stop"
expect allow "$dir/env-CONTAINERS-1" from-env "POST /v1.41/containers/web/stop"
expect deny "$dir/env-CONTAINERS-1" from-env "GET /v1.41/containers/web/logs?stdout=1"
expect deny "$dir/env-IMAGES-0" from-env "GET /v1.41/containers/json"
expect allow "$dir/env-ALLOW_STOP-0" from-env "POST /v1.41/containers/web/stop"
expect deny "$dir/env-ALLOW_STOP-0" from-env "DELETE /v1.41/containers/web"
INFO=1 SOCKET_PATH=/run/other.sock LOG_LEVEL=debug "$program" init --from-env --dir "$dir/socket" > "$dir/out"
grep -q 'unix:///run/other.sock' "$dir/socket/sallyport.conf" || complain "SOCKET_PATH is not taken"
grep -q "LOG_LEVEL is not needed" "$dir/out" || complain "LOG_LEVEL is passed over in silence"
env -i "PATH=$PATH" "$program" init --from-env --dir "$dir/wrong" > "$dir/out" 2>&1 && complain "no variable at all is taken"
grep -q "none of the proxy's variables" "$dir/out" || complain "$(cat "$dir/out")"
for wrong in POST=maybe CONTAINERS=2 SOCKET_PATH=tcp://x; do
	env INFO=1 "$wrong" "$program" init --from-env --dir "$dir/wrong" > "$dir/out" 2>&1 && complain "$wrong is taken"
	grep -q "variable ${wrong%=*} is" "$dir/out" || complain "$(cat "$dir/out")"
done
exit $failed
