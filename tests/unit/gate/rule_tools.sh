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

# A rule that breaks denies as well: a row that expects a denial has not shown that the rule means it.
cat > t/broken.lua <<'END'
return profile "broken" {
	operations = { "read", "container.run" },
	rule("typo", function(req) if req.workload.comand then deny("x") end end),
}
END
write_tests <<'END'
test "denied" { profile = "broken", facts = { operation = "container.create", workload = { image = { tag = "1" } } }, rule = "typo" }
test "broken" { profile = "broken", facts = { operation = "container.create", workload = { image = { tag = "1" } } }, rule = "typo", reason = "rule_error" }
END
expect 1 "^1 passed, 1 failed" test t
expect 1 "reason rule_error, rule typo: .*there is no fact named 'comand'" test t
rm t/broken.lua

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

# What asks a person is expected to ask, and can say why; a denial is no question.
cat > t/q.lua <<'END'
return profile "asks" { operations = { "container.run" }, images = { "**" }, local_images = { "**" }, users = "any", networks = { "*" },
	rule("big", function(req)
		if get(req.workload, "image.tag") == "big" then
			ask("a person must see it", { field = "Image", value = "big" })
		elseif get(req.workload, "image.tag") == "bad" then
			deny("never")
		elseif get(req.workload, "image.tag") == "odd" then
			warn("an odd image")
		end
	end) }
END
write_tests <<'END'
defaults { profile = "asks", docker = { "run", "alpine:big" } }
test "asks" { expect = "ask", reason = "rule", rule = "big", field = "Image", value = "big" }
test "does not ask" { docker = { "run", "alpine:1" }, expect = "allow" }
test "denies" { docker = { "run", "alpine:bad" }, reason = "rule" }
END
expect 0 "^3 passed, 0 failed" test t
write_tests <<'END'
defaults { profile = "asks" }
test "one" { docker = { "run", "alpine:big" } }
test "two" { docker = { "run", "alpine:bad" }, expect = "ask" }
test "three" { docker = { "run", "alpine:big" }, expect = "ask", reason = "image" }
test "four" { docker = { "run", "alpine:big" }, expect = "allow" }
END
expect 1 "^0 passed, 4 failed" test t
expect 1 "found  *ask$" test t
expect 1 "reason rule, rule big, field Image, value big: a person must see it" test t

# What only warns is allowed, and the warning must be there: for requests, and for facts.
write_tests <<'END'
defaults { profile = "asks", expect = "allow", warning = "an odd image" }
test "one" { docker = { "run", "alpine:odd" } }
test "two" { docker = { "run", "alpine:1" } }
test "three" { docker = { "run", "alpine:bad" }, expect = "deny" }
END
expect 1 "^1 passed, 2 failed" test t
expect 1 "expected  *allow, warning an odd image" test t
write_tests <<'END'
test "one" { profile = "asks", facts = { operation = "container.create", workload = { image = { tag = "odd" } } }, reason = "fact_unknown", warning = "an odd image" }
END
expect 0 "^1 passed, 0 failed" test t

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

# --- profile diff, profile show ---

mkdir d
cat > d/p.lua <<'END'
local function tag(req) return get(req.workload, "image.tag") end
return {
	profile "base" { operations = { "read", "container.run" }, images = { "reg.example/**" }, limits = { memory = "2GiB" },
		rule("no-latest", function(req) if tag(req) == "latest" then deny("no") end end) },
	profile "less" { extends = "base", images = { "reg.example/team/*" }, limits = { memory = "1GiB", pids = 9 },
		rule("more", function() end) },
	profile "apart" { operations = { "read", "exec" }, images = { "reg.example/team/*", "alpine" }, users = "any",
		exception { rule = "image", when = { ["identity.name"] = "x" }, owner = "o", ticket = "T-1", reason = "r", expires = "2999-01-01" } },
	profile "unlimited" { operations = { "read", "container.run" }, images = { "reg.example/**" },
		rule("no-latest", function() end) },
	profile "trial" { operations = { "read", "container.run" }, images = { "reg.example/**" }, limits = { memory = "2GiB" },
		mode = "shadow", modes = { image = "enforce" },
		rule("no-latest", { mode = "shadow" }, function() end) },
}
END
cat > d.conf <<END
log { dir = "$dir/log" }
profiles { "d" }
backend "e" { kind = "docker", address = "unix://$dir/e" }
listener "l" { socket = "$dir/l", otherwise = "base" }
END
expect 0 "grants no more than the first" profile diff --config d.conf base less
expect 0 "^tighter *images *- \"reg.example/\*\*\"  + \"reg.example/team/\*\"" profile diff --config d.conf base less
expect 0 "^tighter *limits" profile diff --config d.conf base less
expect 0 "^tighter *rule more *is new" profile diff --config d.conf base less
expect 0 "!^equal" profile diff --config d.conf base less
expect 0 '"relation":"equal","what":"rule no-latest"' profile diff --config d.conf base less --json
expect 1 "^looser *images" profile diff --config d.conf less base
expect 1 "^looser *rule more *is not there" profile diff --config d.conf less base
expect 1 "^both *operations" profile diff --config d.conf base apart
expect 1 "^both *images" profile diff --config d.conf base apart
expect 1 "^looser *users" profile diff --config d.conf base apart
expect 1 "^looser *exception image *has T-1 of o, until 2999" profile diff --config d.conf base apart
expect 1 "^tighter *exception image" profile diff --config d.conf apart base
expect 1 "^looser *limits" profile diff --config d.conf base unlimited
expect 1 "^undecided *rule no-latest" profile diff --config d.conf base unlimited
expect 1 "^looser *mode " profile diff --config d.conf base trial
expect 0 "grants no more" profile diff --config d.conf base base
mkdir d2; sed 's/2GiB/3GiB/' d/p.lua > d2/p.lua; sed 's/{ "d" }/{ "d2" }/' d.conf > d2.conf
expect 1 "^looser *limits" profile diff --config d.conf --other d2.conf base base
expect 1 "^undecided *rule no-latest" profile diff --config d.conf --other d2.conf base base
mkdir d3; cat > d3/p.lua <<'END'
return {
	profile "slow" { operations = { "read" }, rate = { launch = "2/min" } },
	profile "fast" { operations = { "read" }, rate = { launch = "3/min" } },
	profile "free" { operations = { "read" } },
	profile "child" { extends = "slow", operations = { "read" }, doc = "C", egress = {} },
}
END
sed 's/{ "d" }/{ "d3" }/; s/profile = "[a-z]*"/profile = "slow"/; s/otherwise = "[a-z]*"/otherwise = "slow"/' d.conf > d3.conf
expect 1 "^looser *rate" profile diff --config d3.conf slow fast
expect 1 "^looser *rate" profile diff --config d3.conf slow free
expect 0 "^tighter *rate" profile diff --config d3.conf fast slow
expect 0 "^tighter *rate" profile diff --config d3.conf free slow
expect 0 '^extends *"slow"' profile show child --config d3.conf
expect 0 '^egress *\[\]' profile show child --config d3.conf
expect 0 '^rate .*2/min.*from slow' profile show child --config d3.conf
expect 2 "no profile is called" profile diff --config d.conf base nobody
expect 2 "name two" profile diff --config d.conf base

expect 0 "^limits .*1073741824.*(p.lua:5)" profile show less --config d.conf
expect 0 "^users .*nonroot.*(default)" profile show less --config d.conf
expect 0 "^operations\|^rule *no-latest, enforce *(p.lua:4)" profile show less --config d.conf
expect 0 "^exception *image until 2999-01-01, T-1 for o: r" profile show apart --config d.conf
expect 0 '"operations":"base"' profile show less --config d.conf --json
expect 0 '"images":"less"' profile show less --config d.conf --json

# --- lint: each mistake by itself, in the third line of a profile that is fine otherwise ---

mkdir l
lint_file() {
	rm -f l/*.lua
	{
		printf 'return profile "p" { doc = "x", images = { "reg.example/team/app" }, harden = true,\n'
		printf 'operations = { "read", "container.run" }, limits = { memory = "1GiB", pids = 9 },\n'
		printf '%s\n}\n' "$1"
	} > l/p.lua
	[ "${2:-}" = alone ] || : > l/p_test.lua
}
mistake() { # STATUS CODE LINE: it is found there, and not where a comment says that it is meant
	lint_file "$3" "${4:-}"
	expect "$1" "^l/p.lua:3: [a-z]* \\[$2\\]" lint l
	lint_file "$3 -- lint: ok $2" "${4:-}"
	expect 0 "!\\[$2\\]" lint l
}
rule='rule("r", { doc = "x" }, function(req)'
except='exception { owner = "o", ticket = "t", reason = "r", rule = "image",'
lint_file ''
expect 0 "^0 errors, 0 warnings, 0 hints" lint l
mistake 1 no_word "$rule local x = os.time() end)"
mistake 1 no_word "$rule if req.backend:find(\"x\") then deny(\"x\") end end)"
mistake 1 reason_unknown "$rule deny(\"x\", { reason = \"imge\" }) end)"
mistake 1 index_by_comparison "$rule local T = {} local x = T[1 < 2] end)"
mistake 1 bitwise_constant "$rule local x = 1 ~ (2 or 3) end)"
mistake 1 rule_never 'rule("r", { doc = "x", operations = { "image.push" } }, function() end)'
mistake 1 exception_expired "$except when = { backend = \"x\" }, expires = \"2020-01-01\" }"
mistake 1 exception_soon "$except when = { backend = \"x\" }, expires = \"$(date -ud '+9 days' +%F)\" }"
mistake 1 exception_long "$except when = { backend = \"x\" }, expires = \"2999-01-01\" }"
mistake 1 exception_always "$except when = { backend = \"*\" }, expires = \"$(date -ud '+99 days' +%F)\" }"
mistake 1 network_any 'networks = { "*" }'
mistake 1 port_any 'ports = { "0.0.0.0" }'
mistake 1 label_any 'labels = { "**" }'
mistake 1 capability_strong 'capabilities = { "SYS_ADMIN" }'
mistake 1 entry_shadowed 'networks = { "team-*", "team-a" }'
mistake 1 mount_wide 'mounts = { { "/etc" } }'
mistake 0 mount_shared 'mounts = { { "/srv/x", "rw" } }'
mistake 1 root_unheld 'users = "any"'
mistake 1 not_enforced 'mode = "shadow"'
mistake 1 not_enforced 'modes = { image = "warn" }'
mistake 0 deep_read "$rule if req.workload.image.tag == \"x\" then deny(\"x\") end end)"
mistake 0 no_doc 'rule("r", {}, function() end)'
mistake 0 no_examples 'rule("r", { doc = "x" }, function() end)' alone
lint_file "$rule end) -- os.time() in a comment, and \"*.com\""
expect 0 "^0 errors, 0 warnings, 0 hints" lint l
lint_file "$rule deny(\"os.time() (2 or 3) T[1 < 2]\") end)"
expect 0 "^0 errors, 0 warnings, 0 hints" lint l

whole() { rm -f l/*.lua; printf '%s\n' "$3" > l/p.lua; expect "$1" "^l/p.lua:[12]: [a-z]* \\[$2\\]" lint l; }
whole 1 does_not_load 'return profile "p" { imags = {} }'
whole 1 public_suffix 'return profile "p" { egress = { "*.co.uk:443" } }'
whole 1 image_any 'return profile "p" { images = { "**" } }'
whole 1 image_hub 'return profile "p" { images = { "docker.io/**" } }'
whole 0 image_latest 'return profile "p" { images = { "alpine:latest" } }'
whole 1 no_limits 'return profile "p" { operations = { "container.run" } }'
whole 0 no_harden 'return profile "p" { limits = { memory = "1GiB", pids = 9 }, operations = { "container.run" } }'
expect 0 '"code":"no_harden".*"fix":' lint --json l
expect 2 "no \*.lua" lint empty

exit $failed
