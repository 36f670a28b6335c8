#!/bin/sh
# man.sh PROGRAM MANUAL - the manual names every verb, option and table that the program has, and its synopsis each verb.
set -eu
program=$1 manual=$2 status=0
complain() { echo "$manual: $1 is missing"; status=1; }

"$program" help | sed -n '/^  /s/^  \([a-z ]*[a-z]\)  .*/\1/p' > "${TMPDIR:-/tmp}/verbs.$$"
trap 'rm -f "${TMPDIR:-/tmp}/verbs.$$"' EXIT
[ "$(wc -l < "${TMPDIR:-/tmp}/verbs.$$")" -gt 12 ] || complain "the program's own list"
synopsis=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$manual")
while read -r verb; do
	echo "$synopsis" | grep -q -e "^\.Cm \(.*| \)*$verb\( |.*\)*\$" -e "^\.Op Ar verb | Cm .*\<$verb\>" ||
		complain "$verb in the synopsis"
	grep -q "\\(Cm\\|Ic\\|,\\||\\).* *$verb" "$manual" || complain "$verb"
	for option in $("$program" help $verb | sed -n 's/^  .*--\([a-z]*\) .*/\1/p'); do
		letter=$("$program" help $verb | sed -n "s/^  -\\(.\\), --$option .*/\\1/p")
		grep -q -e "Fl -$option" -e "Fl ${letter:--none} \|Fl ${letter:--none}\$" "$manual" ||
			complain "$verb --$option"
	done
done < "${TMPDIR:-/tmp}/verbs.$$"
exit $status
