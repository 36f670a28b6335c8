// stock checks what `sallyport audit` hands out with Go's own sumdb packages, which know nothing of Sallyport.
//
//	stock VKEY CHECKPOINT                          the note is signed, the text is a checkpoint
//	stock VKEY CHECKPOINT PROOF RECORD             ... and RECORD (a file) is in its tree
//	stock VKEY CHECKPOINT GROWTH OLD               ... and the tree has grown from the checkpoint OLD
package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func fail(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func read(name string) string {
	bytes, err := os.ReadFile(name)
	fail("read", err)
	return string(bytes)
}

func hash(text string) tlog.Hash {
	var h tlog.Hash
	bytes, err := base64.StdEncoding.DecodeString(text)
	fail("hash", err)
	if copy(h[:], bytes) != tlog.HashSize || len(bytes) != tlog.HashSize {
		fail("hash", fmt.Errorf("%d bytes", len(bytes)))
	}
	return h
}

func checkpoint(vkey, text string) (int64, tlog.Hash) {
	verifier, err := note.NewVerifier(vkey)
	fail("key", err)
	opened, err := note.Open([]byte(text), note.VerifierList(verifier))
	fail("note", err)
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || strings.ReplaceAll(lines[0], "+", "_") != verifier.Name() {
		fail("checkpoint", fmt.Errorf("%q", opened.Text))
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	fail("size", err)
	return size, hash(lines[2])
}

// The lines of a proof before its checkpoint, and the checkpoint.
func split(text string) ([]string, string) {
	before, after, found := strings.Cut(text, "\n\n")
	if !found {
		fail("proof", fmt.Errorf("no empty line"))
	}
	return strings.Split(before, "\n"), after
}

func number(line, word string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(line, word+" "), 10, 64)
	fail(word, err)
	return n
}

func main() {
	args := os.Args[1:]
	size, root := checkpoint(args[0], read(args[1]))
	if len(args) == 2 {
		return
	}
	lines, end := split(read(args[2]))
	if proven, provenRoot := checkpoint(args[0], end); proven != size || provenRoot != root {
		fail("proof", fmt.Errorf("of another checkpoint"))
	}
	var hashes []tlog.Hash
	if lines[0] == "c2sp.org/tlog-proof@v1" {
		for _, line := range lines[2:] {
			hashes = append(hashes, hash(line))
		}
		fail("inclusion", tlog.CheckRecord(hashes, size, root, number(lines[1], "index"),
			tlog.RecordHash([]byte(read(args[3])))))
		return
	}
	for _, line := range lines[1:] {
		hashes = append(hashes, hash(line))
	}
	old, oldRoot := checkpoint(args[0], read(args[3]))
	if number(lines[0], "old") != old {
		fail("growth", fmt.Errorf("%s", lines[0]))
	}
	fail("growth", tlog.CheckTree(hashes, size, root, old, oldRoot))
}
