#!/bin/sh
# tickets.sh ROOT - nothing reaches an engine past the log (fault case Q38): receipts are made in one
# place, and every function that sends to an engine is known here, with what it may send.
set -eu
cd "${1:-.}"
bad=0
complain() { echo "tests/lint/tickets.sh: $1"; bad=1; }

made=$(grep -rlE '(struct audit_receipt [a-z_]+ *=|\(struct audit_receipt\) *\{)' --include='*.c' --include='*.h' audit gate proxy rules backends)
[ "$made" = audit/client.c ] || complain "struct audit_receipt is made in: $made"

# FILE FUNCTION CALLS # what it sends
known='
proxy/engine_get.c run 1 # GET
proxy/forward.c forward 1 # what a caller asked for: with a receipt, or it changes nothing
proxy/forward.c undo 1 # takes back what a request on record has made
proxy/inside.c start_get 1 # GET
proxy/lookup.c start_get 1 # GET
proxy/observe_ask.c observe_ask 1 # GET
proxy/pulse.c ask 1 # GET
proxy/rejudge.c start_list 1 # GET
proxy/rejudge_stop.c send_part 1 # a stop, with a receipt
proxy/watcher.c ask 1 # GET
'
found=$(grep -rlE '\bupcall_start\(' --include='*.c' proxy gate | grep -v '^proxy/upstream.c$' | sort | while read -r file; do
	awk -v file="$file" '/^[a-z].*\(/ { split($0, part, "("); n = split(part[1], word, /[ *]/); name = word[n] }
		/upcall_start\(/ && !/^struct/ { count[name]++ } END { for (f in count) print file, f, count[f] }' "$file"
done | sort)
[ "$found" = "$(echo "$known" | sed -n 's/ #.*//p' | sort)" ] || complain "who sends to engines is:
$found"

# What is asked besides changes nothing: no method but GET stands in those files.
for file in proxy/engine_get.c proxy/inside.c proxy/lookup.c proxy/observe_ask.c proxy/pulse.c proxy/rejudge.c proxy/watcher.c; do
	! grep -nE '"(POST|PUT|DELETE|PATCH|HEAD) ' "$file" || complain "$file sends more than GET"
done

# The two that change something assert or hold a receipt.
grep -A30 '^void forward(' proxy/forward.c | grep -q 'assert(receipt || !op_class_changes_state' ||
	complain "forward() does not insist on a receipt"
grep -A10 '^static void send_part(struct look \*l, const struct audit_receipt \*receipt)' proxy/rejudge_stop.c |
	grep -q 'assert(receipt);' || complain "send_part() does not insist on a receipt"
exit $bad
