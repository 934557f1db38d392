"""Where the broker under test listens, as the runner told us, and the connection strings that reach it.

The strings are those of the Service Bus emulator, so what passes here works for its users unmodified.
"""

import os
from dataclasses import dataclass
from pathlib import Path

KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"


def _port(name: str) -> int:
    return int(os.environ[f"VORRANG_{name}_PORT"])


@dataclass(frozen=True)
class Endpoint:
    """The ports of one running broker."""

    amqp: int
    amqps: int
    http: int
    https: int
    host: str = "localhost"

    @staticmethod
    def from_environment() -> "Endpoint":
        return Endpoint(amqp=_port("AMQP"), amqps=_port("AMQPS"), http=_port("HTTP"), https=_port("HTTPS"))

    def connection_string(self, key: str = KEY) -> str:
        """The emulator's connection string: plain TCP, development key."""
        return (
            f"Endpoint=sb://{self.host}:{self.amqp};SharedAccessKeyName={KEY_NAME};"
            f"SharedAccessKey={key};UseDevelopmentEmulator=true;"
        )

    def secure_connection_string(self) -> str:
        """The connection string of the cloud: TLS, no port, no emulator flag."""
        return f"Endpoint=sb://{self.host};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"


BINARY = Path(os.environ["VORRANG_BINARY"])
ENTITIES = Path(os.environ["VORRANG_ENTITIES"])
CERTIFICATE = Path(os.environ["VORRANG_CERTIFICATE"])
