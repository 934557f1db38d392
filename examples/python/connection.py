"""Which broker the examples talk to."""

import os

CONNECTION_STRING = os.environ.get(
    "VORRANG_CONNECTION_STRING",
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
)
