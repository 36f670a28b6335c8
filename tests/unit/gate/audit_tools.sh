#!/bin/sh
# audit_tools.sh PROGRAM FORMAT - what `audit query`, `export` and `report` say of the example log of FORMAT.md.
set -u
program=$1 format=$2 failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
log=$dir/log
mkdir "$log"
grep '^{"v":1,"log":"gate.example/host7","seq":.*}$' "$format" | awk -v dir="$log" '
	/"type":"log_open"/ { match($0, /"seq":[0-9]+/); file = sprintf("%s/%020d.log", dir, substr($0, RSTART + 6, RLENGTH - 6)) }
	{ print > file }'
export HOME="$dir"

# expect STATUS PATTERN COMMAND...: the status, and a line of the output that has the pattern
expect() {
	want=$1 pattern=$2
	shift 2
	"$program" "$@" >"$dir/out" 2>&1
	got=$?
	if [ $got != "$want" ] || { [ -n "$pattern" ] && ! grep -q -e "$pattern" "$dir/out"; }; then
		echo "sallyport $*: status $got, want $want with '$pattern':"
		head -20 "$dir/out"
		failed=1
	fi
}
# never PATTERN: the last output does not have it
never() {
	if grep -q -e "$1" "$dir/out"; then
		echo "the output has '$1':"
		cat "$dir/out"
		failed=1
	fi
}
esc=$(printf '\033')

expect 0 'agent-7  *container.create  *docker.io/library/python:3.12  *allow  *ok 201' audit query "$log"
expect 0 'exec.start .* unknown' audit query "$log" --since 2026-11-29 --until 2026-11-30T00:00:00Z
expect 0 'GET /.x1b\[2J ' audit query "$log" --type malformed
never "$esc"
expect 0 '^"7",.*"GET /.x1b\[2J "",""h"":""x""}.x0d.x0a"' audit query "$log" --type malformed --format csv
never "$esc"
[ "$(wc -l <"$dir/out")" = 2 ] || { echo "CSV: a record is not one line"; failed=1; }
expect 0 '"privileges"' audit query "$log" --reason privileged --format csv
expect 1 'TIME' audit query "$log" --identity nobody
expect 1 '' audit query "$log" --text 'privileged nothing' --format json
expect 2 'is no time' audit query "$log" --since tomorrow
expect 2 "no record is of the type 'decison' (did you mean 'decision'?)" audit query "$log" --type decison
expect 2 'takes allow, ask or deny' audit query "$log" --verdict denied
expect 2 'takes table, json or csv' audit query "$log" --format xml
expect 2 'No such file' audit query "$dir/none"
expect 2 "give the log's folder" audit query
expect 0 'container.create' audit query "$log" --index "$dir/elsewhere.sqlite" -n 1 --op container.create
[ -f "$dir/elsewhere.sqlite" ] || { echo "--index FILE is not there"; failed=1; }

# JSON is the records' own lines, with which verify is content.
"$program" audit query "$log" --id 01985f3e-8b40-7000-8000-000000000011 --format json >"$dir/lines"
sed -n '4,5p' "$log"/00000000000000000000.log | cmp -s - "$dir/lines" || { echo "JSON is not the log's lines"; failed=1; }
expect 0 'fine' audit verify "$log"

# Exports: each record once, and on behind a number.
for form in ocsf ecs cef; do
	expect 0 'container.create' audit export "$log" --format $form
	never "$esc"
	[ "$(wc -l <"$dir/out")" = 25 ] || { echo "$form: not a line a record"; failed=1; }
	tail -n 4 "$dir/out" >"$dir/tail"
	"$program" audit export "$log" --format $form --after 20 | cmp -s - "$dir/tail" ||
		{ echo "$form: --after 20 is not the last four"; failed=1; }
	expect 1 '' audit export "$log" --format $form --after 24
	expect 2 'no record 25' audit export "$log" --format $form --after 25
	expect 1 '' audit export "$log" --format $form --until 2020-01-01
done
expect 2 'takes ocsf, ecs or cef' audit export "$log" --format leef

# Reports. The example log is signed, and whole.
period='--from 2026-11-29 --to 2026-11-30'
expect 0 '^Completeness: whole' audit report "$log" $period
expect 0 '25 records, 0 to 24' audit report "$log" $period
expect 0 '"allowed":3,"refused":2' audit report "$log" $period --format json
expect 0 'model-code sha256 3f0a9c5d' audit report "$log" $period
expect 0 '<svg class="time"' audit report "$log" $period --format html
never "$esc"
never '<script'
expect 0 'the period   has no records' audit report "$log" --from 2020-01-01 --to 2020-02-01
expect 2 'ends before it begins' audit report "$log" --from 2020-02-01 --to 2020-01-01
expect 2 'takes text, json or html' audit report "$log" --format pdf
cp -r "$log" "$dir/altered"
sed 's/agent-7/agent-8/' "$log/00000000000000000000.log" >"$dir/altered/00000000000000000000.log"
expect 1 '^Completeness: altered' audit report "$dir/altered" $period
expect 2 'was altered' audit query "$dir/altered" --index "$dir/other.sqlite"
expect 2 'was altered' audit export "$dir/altered" --format cef

# A folder that is not the reader's alone gets no index: that goes to the reader's cache.
rm -f "$log/index.sqlite"
chmod 0777 "$log"
expect 0 'container.create' audit query "$log"
[ ! -e "$log/index.sqlite" ] && ls "$dir"/.cache/sallyport/*.sqlite >/dev/null ||
	{ echo "the index is not in the cache"; failed=1; }
exit $failed
