"""Our protocol engine as a process: serving until we let go of it, or calling a server of ours."""

import os
import subprocess

PEER = os.environ["VORRANG_INTEROP_PEER"]
CLIENT = os.environ["VORRANG_INTEROP_CLIENT"]
USER, PASSWORD = "guest", "secret"


class ServingPeer:
    """The engine as server, on a free port. It ends when its input does, whatever becomes of us."""

    def __init__(self):
        self._process = subprocess.Popen([PEER, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, port = self._process.stdout.readline().split()
        assert word == "listening"
        self.port = int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()


def call(port, *login):
    """Lets the engine talk to a server of ours; returns the steps it got through, and what it complained about."""
    done = subprocess.run([PEER, "call", str(port), *login], capture_output=True, text=True, timeout=30)
    return done.stdout.splitlines(), done.stderr


def call_by_client(port, *login):
    """The same for the client library, which connects again, waits and settles by itself."""
    done = subprocess.run([CLIENT, str(port), *login], capture_output=True, text=True, timeout=30)
    return done.stdout.splitlines(), done.stderr


def filter_of(source):
    """The filter map of a source, as Python values."""
    source.filter.rewind()
    return source.filter.get_object() if source.filter.next() else None
