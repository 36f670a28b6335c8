#!/bin/sh
# includes.sh ROOT - checks who includes whom.  The table is the architecture.
set -eu
cd "${1:-.}"

find gate rules proxy audit backends tests -name '*.[ch]' | LC_ALL=C sort | xargs grep -Hn '^[[:space:]]*#[[:space:]]*include' | awk '
BEGIN {
	# folder           what it may include, by prefix of the path
	may["gate/base"] = "gate/base/"
	may["audit"]     = "audit/ gate/base/"
	may["rules"]     = "rules/ gate/base/"
	may["backends"]  = "backends/ gate/base/ rules/hide.h rules/identity.h rules/operation.h rules/reach.h rules/seccomp.h rules/workload.h"
	may["proxy"]     = "proxy/ gate/base/ rules/ backends/backend.h audit/"
	may["gate"]      = "gate/ rules/ proxy/ audit/ backends/"
	may["tests"]     = "tests/ gate/ rules/ proxy/ audit/ backends/"

	# library header   the one folder that knows it (and tests)
	owner["lua"] = owner["lauxlib"] = owner["lualib"] = "rules"
	owner["microhttpd"] = "proxy"
	owner["http_parser"] = owner["ares"] = "proxy"
	owner["pcre2"] = "rules"
	owner["zlib"] = "backends"
	owner["archive"] = "gate"
	owner["jansson"] = owner["seccomp"] = owner["linux/landlock"] = "gate/base"
	owner["gnutls/crypto"] = "gate/base"
	owner["gnutls/gnutls"] = owner["gnutls/x509"] = owner["gnutls/abstract"] = "proxy"
	owner["sodium"] = owner["sqlite3"] = owner["libpq-fe"] = "audit"
}
function folder(path,   p) {
	if (path ~ /^gate\/base\//) return "gate/base"
	split(path, p, "/")
	return p[1]
}
function starts_with_one_of(s, list,   n, a, i) {
	n = split(list, a, " ")
	for (i = 1; i <= n; i++)
		if (index(s, a[i]) == 1) return 1
	return 0
}
function complain(why) { printf "%s:%s: %s\n", file, line, why; bad = 1 }
{
	split($0, part, ":"); file = part[1]; line = part[2]
	quoted = match($0, /"[^"]+"/); if (!quoted) match($0, /<[^>]+>/)
	inc = substr($0, RSTART + 1, RLENGTH - 2)
	from = folder(file)
	if (quoted) {
		if (!starts_with_one_of(inc, may[from])) complain(from " may not include " inc)
		if (inc ~ /_priv\.h$/ && folder(inc) != from && from != "tests") complain(inc " is private to " folder(inc))
		if (file ~ /\.h$/ && inc ~ /\.h$/) edge[file] = edge[file] " " inc
		if (inc !~ /\//) complain("write the path from the root: " inc)
	} else for (lib in owner)
		if (index(inc, lib) == 1 && from != owner[lib] && from != "tests") complain("only " owner[lib] " may include <" inc ">")
}
function visit(f,   n, a, i) {
	if (state[f] == 2) return
	if (state[f] == 1) { printf "%s: header cycle\n", f; bad = 1; return }
	state[f] = 1
	n = split(edge[f], a, " ")
	for (i = 1; i <= n; i++) visit(a[i])
	state[f] = 2
}
END { for (f in edge) visit(f); exit bad }
'
