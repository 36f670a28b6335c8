#!/bin/sh
# seccomp_tools.sh PROGRAM - profiles of system calls: what is said of a file, of two, and of a folder with one.
set -eu
program=$(realpath "$1") failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/sallyport-seccomp-XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# expect STATUS PATTERN ARGUMENTS...: stdout or stderr must hold PATTERN; "!PATTERN" must not be there
expect() {
	want=$1 pattern=$2; shift 2
	status=0 found=0
	"$program" "$@" > out 2>&1 < /dev/null || status=$?
	case $pattern in
	!*) grep -q -e "${pattern#!}" out || found=1 ;;
	*) if grep -q -e "$pattern" out; then found=1; fi ;;
	esac
	if [ "$status" != "$want" ] || [ $found = 0 ]; then
		echo "sallyport $*: status $status, not $want with '$pattern':"
		cat out
		failed=1
	fi
}

# profile FILE CALLS [MORE]: an allow list, each entry on a line of its own
profile() {
	{
		printf '{ "defaultAction": "SCMP_ACT_ERRNO", %s "syscalls": [\n' "${3:-}"
		between=
		for call in $2; do
			printf '%s{ "names": [\n"%s"\n], "action": "SCMP_ACT_ALLOW" }' "$between" "$call"
			between=,
		done
		printf '\n] }\n'
	} > "$1"
}

# --- check ---

profile fine.json "read write"
profile unknown.json "read frobnicate"
profile newer.json "read frobnicate" '"sallyport": { "newer": ["frobnicate"], "weaker": ["frobnicate: not there yet"] },'
profile weaker.json "read unshare"
profile marked.json "read unshare" '"sallyport": { "weaker": ["unshare: a sandbox in the sandbox"] },'
printf '{"defaultAction":"SCMP_ACT_PERMIT"}' > action.json
printf '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"},{"names":["read"],"action":"SCMP_ACT_LOG"}]}' > unclear.json
printf '{' > broken.json

expect 0 "^fine.json: fine; [0-9]* instructions" seccomp check fine.json
expect 0 "^tight-python: fine" seccomp check tight-python
expect 0 "^default: fine" seccomp check default
expect 1 "^unknown.json:5: frobnicate: no such system call is known here" seccomp check unknown.json
expect 0 "^newer.json: fine" seccomp check newer.json
expect 1 "^weaker.json:5: unshare: allowed beyond the engine's default" seccomp check weaker.json
expect 0 "meant to be weaker than the engine's default: unshare (a sandbox in the sandbox)" seccomp check marked.json
expect 1 'defaultAction: "SCMP_ACT_PERMIT" is not known' seccomp check action.json
expect 1 "read: its rules can be read in two ways" seccomp check unclear.json
expect 1 "broken.json:1:" seccomp check broken.json
expect 2 "absent.json" seccomp check absent.json
expect 2 "name one file" seccomp check
expect 1 '"line":5,"call":"unshare"' seccomp check --json weaker.json
expect 0 '{"findings":\[\]}' seccomp check --json fine.json

# More rules than the kernel takes instructions.
awk 'BEGIN {
	printf "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":["
	for (i = 0; i < 1000; i++)
		printf "%s{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"},{\"index\":1,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"}]}", i ? "," : "", i * 7, i
	printf "]}"
}' > large.json
expect 1 "more than the 4096 instructions" seccomp check large.json

# --- diff ---

profile less.json "read"
expect 0 "allow the same" seccomp diff fine.json fine.json
expect 1 "^- fine.json: write$" seccomp diff fine.json less.json
expect 1 "^+ fine.json: write$" seccomp diff less.json fine.json
expect 1 "!^+" seccomp diff fine.json less.json
expect 1 "^- default: ptrace$" seccomp diff default tight-shell
expect 1 "!^+" seccomp diff default tight-shell
expect 1 '{"only_first":\["write"\],"only_second":\[\]}' seccomp diff --json fine.json less.json
expect 2 "action.json: defaultAction" seccomp diff fine.json action.json
expect 2 "name two profiles" seccomp diff fine.json

# --- beside trust profiles ---

# folder NAME CALLS MORE LUA: a folder with own.seccomp.json and profiles
folder() {
	mkdir "$1"
	profile "$1/own.seccomp.json" "$2" "$3"
	printf 'local base = { doc = "x", operations = { "read" } }\nreturn { %s }\n' "$4" > "$1/p.lua"
}

own='profile "a" { doc = "x", operations = { "container.run" }, images = { "alpine" }, seccomp = "own", limits = { memory = "1GiB", pids = 64 } }'
folder good "read write" "" "$own"
folder bad-name "read" "" 'profile "a" { doc = "x", seccomp = "onw" }'
folder bad-call "read frobnicate" "" "$own"
folder bad-weaker "read unshare" "" "$own"
folder bad-mark "read" '"sallyport": { "weaker": ["read: for nothing"] },' "$own"
folder meant "read unshare" '"sallyport": { "weaker": ["unshare: a sandbox in the sandbox"] },' "$own"
folder tighter "read" "" 'profile "a" { doc = "x", seccomp = "tight-shell" }, profile "b" { doc = "x", extends = "a", seccomp = "own" }'
folder looser "read ptrace" "" 'profile "a" { doc = "x", seccomp = "tight-shell" }, profile "b" { doc = "x", extends = "a", seccomp = "own" }'
folder other "read" "" 'profile "a" { doc = "x", apparmor = "one" }, profile "b" { doc = "x", extends = "a", apparmor = "two" }'
folder off "read" "" 'profile "a" { doc = "x", apparmor = "unconfined" }'
cp -r good taken && mv taken/own.seccomp.json taken/default.seccomp.json

mkdir large && cp large.json large/own.seccomp.json && cp good/p.lua large
expect 0 "0 errors" lint good
expect 1 "own.seccomp.json:1: error .*more than the 4096 instructions" lint large
expect 1 'no seccomp profile is named "onw"' lint bad-name
expect 1 'own.seccomp.json:5:.*no system call "frobnicate" is known here' lint bad-call
expect 1 "own.seccomp.json:5:.*unshare is allowed beyond the engine's default" lint bad-weaker
expect 1 "own.seccomp.json:.*is marked as weaker than the engine's default and is not" lint bad-mark
expect 0 "0 errors" lint meant
expect 0 "!does_not_load" lint tighter
expect 1 '"own" allows more than "tight-shell", which "a" has' lint looser
expect 1 '"a" has "one", which must stay' lint other
expect 1 '"unconfined" is no profile' lint off
expect 1 'there is another seccomp profile "default"' lint taken

# --- what serve and check load is the same ---

cat > gate.conf <<END
log { dir = "$dir/log" }
profiles { "$dir/bad-weaker" }
backend "e" { kind = "docker", address = "unix://$dir/e.sock" }
identity "me" { uid = 1000, profile = "a" }
listener "l" { socket = "$dir/l.sock", backend = "e", identities = { "me" } }
END
printf 'GET /_ping HTTP/1.1\nHost: x\n\n' > request
printf '{}' > facts
expect 2 "own.seccomp.json:5: unshare is allowed beyond" check --config gate.conf --listener l --facts facts request
expect 2 "own.seccomp.json:5: unshare is allowed beyond" serve --config gate.conf
sed 's/bad-weaker/good/' gate.conf > good.conf
expect 0 "!seccomp" profile list --config good.conf
expect 0 'seccomp *"own"' profile show --config good.conf a

exit $failed
