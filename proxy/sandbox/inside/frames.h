/*
 * frames.h - how the gate and the program inside a sandbox talk.
 *
 * `inside` is a small static program that is mounted read-only into every sandbox.  It needs
 * nothing of the image: no shell, no tar.  Each exec runs it once:
 *
 *	inside idle                       the sandbox's first process: reaps, until SIGTERM
 *	inside run [--cwd D] [--timeout MS] [--tty ROWSxCOLS] [--output-max N] [--env K=V]... --
 *ARGV... inside get P                      the octets of a regular file inside put P [--mode M]
 *[--parents]   replaces P at once (temporary file, rename); M is octal inside list P [--max N] one
 *line of JSON each entry, in no order; N: 10000 unless given inside stat P                     one
 *such line, of P itself (a link is not followed) inside remove P [--recursive]     inside mkdir P
 *[--parents] inside tar P                      P and what is below it, as a tar (names relative to
 *P) inside untar P                    unpacks one into the folder P: never outside, no devices
 *	inside connect PORT               a TCP connection to the sandbox's own loopback
 *
 * Every file verb takes --beneath D first: P is then relative to D, and no link in P, however it
 * points, leads out of D.
 *
 * Over its stdin and stdout go frames: one octet of type, the length as 32 bits, big-endian, at
 *most FRAME_DATA_MAX, then that many octets (none are allowed).  Its stderr is not used.
 *
 * Names (P and D of file verbs, "name" and "target" of entries) are percent-encoded as in the path
 * of a URL, one decode: any octet may be %XX, and in answers every octet but A-Z a-z 0-9 - . _ ~ /
 * is (upper-case digits).  JSON cannot carry names that are not UTF-8, and exec requests are JSON.
 * A "%" that is not followed by two hexadecimal digits, and %00, are refused.  --cwd, --env and
 * ARGV are taken as they are.
 *
 * An entry: {"name":"a%20b","type":"file","size":5,"mode":"0644","mtime":1700000000,"target":"..."}
 * type: file, directory, link, fifo, socket, device; target: of links only.
 *
 * The end is one frame of JSON, and nothing follows it:
 *	{"code":N,"signal":N,"timed_out":false,"truncated":false}
 *		code: the exit status, 128 + signal if it died of one; signal: 0 if of none;
 *		truncated: output went on after --output-max octets (stdout and stderr together; the
 *		rest is thrown away, the program is not stopped), or --max entries
 *	{"error":"ENOSPC","message":"..."}
 *		an errno's name: it was not done.  EPROTO: what came on stdin made no sense.
 * The gate closes when it has read the end, and only then `inside` ends (or after 5 s).
 * No end frame: somebody in the sandbox killed `inside` itself.  Whatever comes from inside is from
 * hostile hands, and is read as such.
 *
 * End of file on stdin means that the gate is gone, before FRAME_STDIN_END and after it: the tree
 *of a run is killed, a put leaves no trace.  So the gate keeps its side open until the end frame.
 * A frame waits behind stdin that the program does not read; closing the connection does not: it
 * is noticed at any time.
 *
 * A run's tree is killed until nothing is left of it when the time is over, on SIGKILL and when the
 * gate is gone, children that called setsid() included.  What a program that ended by itself left
 * in the background goes on; its output after the end is lost.
 *
 * put, untar: FRAME_STDIN and FRAME_STDIN_END carry the octets.  connect: the same for what is sent
 * (the end shuts that direction), FRAME_STDOUT for what is received; a first FRAME_STDOUT without
 * octets says that the connection stands; the end comes when the other side has closed.
 */
#ifndef PROXY_SANDBOX_INSIDE_FRAMES_H
#define PROXY_SANDBOX_INSIDE_FRAMES_H

#include <stdint.h>

#define FRAME_HEAD     5u     /* octets before the data: type, length */
#define FRAME_DATA_MAX 65536u /* octets of data in one frame, at most */
#define FRAME_END_MAX  4096u  /* octets of the end's JSON, at most */
#define FRAME_LINE_MAX 16384u /* octets of one entry's line, its line feed included, at most */
#define INSIDE_PATH    "/.sallyport/inside" /* where it is mounted */

enum frame_type {
	/* to inside */
	FRAME_STDIN = 0,     /* octets for the program */
	FRAME_STDIN_END = 1, /* the program's stdin ends; no data */
	FRAME_SIGNAL = 2,    /* u8: the signal's number, to the whole tree */
	FRAME_RESIZE = 3,    /* u16 rows, u16 columns, big-endian; with --tty */

	/* from inside */
	FRAME_STDOUT = 16,
	FRAME_STDERR = 17,
	FRAME_END = 18, /* JSON, see above; nothing follows */
};

/* Writes a frame's head for length octets of data. */
static inline void frame_head(uint8_t head[FRAME_HEAD], enum frame_type type, uint32_t length)
{
	head[0] = (uint8_t)type;
	head[1] = (uint8_t)(length >> 24);
	head[2] = (uint8_t)(length >> 16);
	head[3] = (uint8_t)(length >> 8);
	head[4] = (uint8_t)length;
}

/* The length that a head says; who reads it compares it with FRAME_DATA_MAX. */
static inline uint32_t frame_length(const uint8_t head[FRAME_HEAD])
{
	return (uint32_t)head[1] << 24 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 8 | head[4];
}

#endif
