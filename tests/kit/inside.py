"""The gate's side of the frames that the program in a sandbox speaks (proxy/sandbox/inside/frames.h)."""

import json
import os
import select
import struct
import subprocess
import urllib.parse

STDIN, STDIN_END, SIGNAL, RESIZE, STDOUT, STDERR, END = 0, 1, 2, 3, 16, 17, 18
PATIENCE = 60  # seconds; a failure that takes no shorter, never a measure


def frame(kind, data=b""):
    return struct.pack(">BI", kind, len(data)) + data


def encoded(name):
    """A name as octets, the way file verbs take it."""
    return urllib.parse.quote_from_bytes(os.fsencode(name), safe="/")


def decoded(name):
    return urllib.parse.unquote_to_bytes(name)


class Inside:
    """One run of the program.  Frames are sent with send(), and read with next() or finish()."""

    def __init__(self, program, *words, env=None, **more):
        self.process = subprocess.Popen([program, *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
                                        env=env, **more)
        self.buffer = b""

    def send(self, kind, data=b""):
        """Waits until the program has taken it; one that has ended takes nothing."""
        rest = frame(kind, data)
        try:
            while rest:
                rest = rest[self.process.stdin.write(rest):]
        except BrokenPipeError:
            pass
        return self

    def send_all(self, data):
        """data as stdin, and its end."""
        for at in range(0, len(data), 65536):
            self.send(STDIN, data[at:at + 65536])
        return self.send(STDIN_END)

    def _read(self, count):
        out = self.process.stdout.fileno()
        while len(self.buffer) < count:
            if not select.select([out], [], [], PATIENCE)[0]:
                raise TimeoutError("the program says nothing")
            got = os.read(out, 1 << 20)
            if not got:
                raise EOFError("it ended without saying so")
            self.buffer += got
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def next(self):
        kind, length = struct.unpack(">BI", self._read(5))
        assert length <= 65536, length
        return kind, self._read(length)

    def until(self, text, kind=STDOUT):
        """Reads until text was in the output of that kind; what came."""
        got = b""
        while text not in got:
            one, data = self.next()
            assert one != END, data
            got += data if one == kind else b""
        return got

    def finish(self):
        """(end, stdout, stderr): all that is left, and that nothing follows."""
        output = {STDOUT: [], STDERR: []}
        while True:
            kind, data = self.next()
            if kind == END:
                break
            output[kind].append(data)
        self.process.stdin.close()
        assert not self.buffer and os.read(self.process.stdout.fileno(), 1) == b"", "something follows the end"
        self.close()
        return json.loads(data), b"".join(output[STDOUT]), b"".join(output[STDERR])

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(PATIENCE)


def run(program, *words, data=b"", **more):
    return Inside(program, *words, **more).send_all(data).finish()
