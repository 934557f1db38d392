"""The programs of `examples/` in each language, and the broker they talk to."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from endpoint import KEY, KEY_NAME

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
#: Where the runner has built the Rust programs and installed the JavaScript packages.
RUST = Path(os.environ["VORRANG_RUST_SAMPLES"])
NODE_MODULES = Path(os.environ["VORRANG_NODE_MODULES"])
ENDS_WITHIN_SECONDS = 30


class Language:
    """How a program of one language is started; `admin` is the string its administration client takes."""

    def __init__(self, command, admin):
        self._command = command
        self._admin = admin

    def environment(self, endpoint, certificate):
        string = f"Endpoint=sb://localhost:{endpoint.amqp};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY};UseDevelopmentEmulator=true;"
        return {
            **os.environ,
            "VORRANG_CONNECTION_STRING": string,
            "VORRANG_ADMIN": self._admin(endpoint),
            "VORRANG_CERTIFICATE": str(certificate),
            "NODE_EXTRA_CA_CERTS": str(certificate),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, program, environment, *arguments):
        command = [*self._command(program), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def run(self, program, environment, *arguments):
        """Runs a program to its end; what it wrote."""
        process = self.start(program, environment, *arguments)
        try:
            output, _ = process.communicate(timeout=ENDS_WITHIN_SECONDS)
        finally:
            process.kill()
        assert process.returncode == 0, output
        return output.splitlines()


def end(process):
    """Asks a program to end, as a terminal does; what it still wrote."""
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=ENDS_WITHIN_SECONDS)
    return output


def javascript(folder):
    """Modules are found beside the program that imports them, so the programs go where the packages are."""
    shutil.copytree(EXAMPLES / "javascript", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules"))
    (folder / "node_modules").symlink_to(NODE_MODULES)
    return Language(
        lambda program: ["node", str(folder / f"{program}.js")],
        over_https,
    )


def python():
    return Language(lambda program: [sys.executable, str(EXAMPLES / "python" / f"{program}.py")], over_https)


def over_https(endpoint):
    return f"Endpoint=sb://localhost:{endpoint.https};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"


def rust():
    return Language(lambda program: [str(RUST / program)], lambda endpoint: f"http://localhost:{endpoint.http}")
