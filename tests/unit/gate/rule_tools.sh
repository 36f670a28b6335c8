#!/bin/sh
# rule_tools.sh PROGRAM - the tools for authors of profiles: what they say, and with which exit status.
set -eu
program=$(realpath "$1") failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/sallyport-tools-XXXXXX")
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

# --- test ---

mkdir t empty
cat > t/p.lua <<'END'
return profile "p" {
	operations = { "read", "container.run", "image.pull" },
	images = { "docker.io/library/alpine" },
	rule("no-latest", function(req)
		local function say(tag)
			deny("name a version", { field = "Image", value = tag })
		end
		if get(req.workload, "image.tag") == "latest" then
			say("latest")
		end
	end),
}
END
write_tests() { { echo 'defaults { profile = "p" }'; cat; } > t/p_test.lua; }

write_tests <<'END'
test "a pull" { docker = { "pull", "alpine" }, expect = "allow" }
END
expect 0 "^1 passed, 0 failed" test t
expect 0 "NEVER OBJECTED" test --coverage t
expect 0 "not run: 6-9" test --coverage t
expect 1 "below the floor" test --fail-under 1 t
expect 0 '"passed":1' test --json t
expect 0 "passed" test --junit report.xml t
grep -q '<testcase classname="t/p_test.lua" name="a pull"' report.xml || { echo "no JUnit row"; failed=1; }
expect 2 "there are no tests" test empty
expect 2 "name folders" test
expect 2 "No such file" test nowhere

write_tests <<'END'
test "objects" { facts = { operation = "container.create", workload = { image = { tag = "latest" } } }, rule = "no-latest", field = "Image", value = "latest" }
test "passes" { facts = { operation = "container.create", workload = { image = { tag = "1" } } } }
END
expect 0 "100 % of outcomes (2 of 2), 100 % of lines" test --fail-under 100 t

# A failure names the row, what was expected and what was found.
write_tests <<'END'
test "one" { docker = { "pull", "reg.example/x:1" }, reason = "image_tag", field = "fromImage" }
END
expect 1 "FAIL t/p_test.lua:2: one" test t
expect 1 "expected  *deny, reason image_tag, field fromImage" test t
expect 1 "reason image, rule pull, field .*, value reg.example/x" test t
# What is not expected to pass is expected to be denied.
write_tests <<'END'
test "one" { docker = { "pull", "alpine" } }
END
expect 1 "expected  *deny" test t

# A fixed clock, whatever the day is.
cat > t/q.lua <<'END'
return profile "q" { operations = { "image.push" }, images = {},
	exception { rule = "image_source", code = "image", when = { ["identity.name"] = "ann" }, owner = "o", ticket = "t",
		reason = "r", expires = "2026-05-01" } }
END
write_tests <<'END'
defaults { profile = "q", identity = "ann", facts = { operation = "image.push", workload = { image = { name = "reg.example/x", tag = "1" } } } }
test "today" { now = "2026-05-01T23:59:59Z", expect = "allow" }
test "tomorrow" { now = "2026-05-02", reason = "image" }
test "by default" { expect = "allow" }
test "somebody else" { identity = "bob", reason = "image" }
END
expect 0 "^4 passed, 0 failed" test t

# Mistakes in tests are told with their line, and nothing passes because of them.
bad() {
	pattern=$1; shift
	printf '%s\n' "$*" | write_tests
	expect 2 "t/p_test.lua:2: .*$pattern" test t
}
bad "did you mean 'expect'" 'test "x" { expct = "allow" }'
bad "a request, a docker command line, or facts" 'test "x" { expect = "allow" }'
bad "expect is allow, ask or deny" 'test "x" { docker = { "pull", "alpine" }, expect = "yes" }'
bad "is no reason code" 'test "x" { docker = { "pull", "alpine" }, reason = "imge" }'
bad "there is no profile" 'test "x" { docker = { "pull", "alpine" }, profile = "other" }'
bad "no fact named" 'test "x" { facts = { operation = "image.pull", workload = { pul = {} } } }'
bad "must name one" 'test "x" { facts = { operation = "image.fly" } }'
bad "cannot be rendered here" 'test "x" { docker = { "run", "--blkio-weight", "5", "alpine" } }'
bad "not 'rm'" 'test "x" { docker = { "rm", "alpine" } }'
bad "names no image" 'test "x" { docker = { "run", "--rm" } }'
bad "now is a day" 'test "x" { docker = { "pull", "alpine" }, now = "soon" }'
bad "not one request" 'test "x" { request = "GET /_ping HTTP/1.1\nContent-Length: 0\n\nGET /_ping HTTP/1.1\nHost: x\n\n" }'

exit $failed
