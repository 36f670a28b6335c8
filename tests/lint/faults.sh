#!/bin/sh
# faults.sh ROOT - tests/checker/faults names each fault case once, and only tests that exist.
set -eu
cd "${1:-.}/tests"
awk '
/^#/ || /^[[:space:]]*$/ { next }
{
	id = $1
	if (id !~ /^Q[0-9]+$/ || seen[id]++) complain(id, "is no case, or comes twice")
	places = 0
	for (i = 2; i <= NF && $i != "#"; i++) {
		places++
		if ($i == "open") continue
		n = split($i, part, ":")
		if (!(part[1] in text)) text[part[1]] = content(part[1])
		if (text[part[1]] == "") complain(id, part[1] " is not there")
		else if (n > 1 && text[part[1]] !~ ("[^a-z_]" part[2] "\\(")) complain(id, part[1] " has no " part[2])
		else if (part[1] ~ /\.c$/ && text[part[1]] !~ ("cmocka_unit_test\\(" part[2] "\\)")) complain(id, part[2] " is not run")
	}
	if (!places || i >= NF) complain(id, "names no test, or does not say what it is")
}
function content(name,   line, all) {
	while ((getline line < name) > 0) all = all "\n" line
	close(name)
	return all
}
function complain(id, why) { printf "tests/checker/faults: %s %s\n", id, why; bad = 1 }
END {
	for (n = 1; n <= 38; n++) if (!seen["Q" n]) complain("Q" n, "is missing")
	exit bad
}
' checker/faults
