"""A broker of our own, for the stories in which it dies and comes back.

It keeps its ports and its data directory over a restart, as a service under a supervisor does.
"""

import re
import signal
import subprocess
import threading

from endpoint import BINARY, ENTITIES, Endpoint

READY_WITHIN_SECONDS = 20
PORTS = ["amqp", "amqps", "http", "https"]
DOOR = re.compile(r"^(amqps?|https?)\s+\S+:(\d+)")
READY_LINE = "vorrang is ready"


class Broker:
    """One process of the binary under test, on free ports, in a directory of the caller's."""

    def __init__(self, data_dir, entities=ENTITIES):
        self._data_dir = data_dir
        self._entities = entities
        self._process = None
        self.endpoint = self._start({name: 0 for name in PORTS})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        """Ends the process as a power failure would: at once, without a word."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def restart(self):
        """Kills the process and starts another on the same ports and the same data."""
        ports = {name: getattr(self.endpoint, name) for name in PORTS}
        self.kill()
        self._start(ports)

    def _start(self, ports):
        command = [BINARY, "serve", "--dev", "--host", "127.0.0.1", "--data-dir", self._data_dir]
        command += ["--emulator-config", self._entities]
        for name, port in ports.items():
            command += [f"--{name}-port", str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        watchdog = threading.Timer(READY_WITHIN_SECONDS, self._process.kill)
        watchdog.start()
        printed, ports = [], {}
        try:
            for line in self._process.stdout:
                printed.append(line)
                ports.update((scheme, int(port)) for scheme, port in DOOR.findall(line))
                if line.strip() == READY_LINE:
                    threading.Thread(target=self._discard, args=[self._process.stdout], daemon=True).start()
                    return Endpoint(**ports)
        finally:
            watchdog.cancel()
        raise RuntimeError("the broker did not get ready:\n" + "".join(printed[-20:]))

    @staticmethod
    def _discard(stream):
        """Keeps the pipe empty, so that the broker never waits for a reader of its log."""
        try:
            while stream.read(4096):
                pass
        except ValueError:
            return  # closed with the process
