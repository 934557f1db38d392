"""Which broker the examples talk to."""

import os

CONNECTION_STRING = os.environ.get(
    "VORRANG_CONNECTION_STRING",
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
)

# The administration client wants HTTPS, and a certificate it can trust: that of a development broker lies in its data directory.
ADMIN_CONNECTION_STRING = os.environ.get(
    "VORRANG_ADMIN",
    "Endpoint=sb://localhost:5443;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
)
CERTIFICATE = os.environ.get("VORRANG_CERTIFICATE", True)
