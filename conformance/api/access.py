"""Where the API is, and a token for it."""

import base64
import hashlib
import hmac
import os
import time
import urllib.parse

KEY_NAME = "RootManageSharedAccessKey"
KEY = "SAS_KEY_VALUE"

BASE = f"http://localhost:{os.environ['VORRANG_HTTP_PORT']}"


def token() -> str:
    """A shared access token for the whole namespace, good for an hour."""
    resource = urllib.parse.quote(BASE + "/", safe="")
    expiry = str(int(time.time()) + 3600)
    digest = hmac.new(KEY.encode(), f"{resource}\n{expiry}".encode(), hashlib.sha256).digest()
    signature = urllib.parse.quote(base64.b64encode(digest), safe="")
    return f"SharedAccessSignature sr={resource}&sig={signature}&se={expiry}&skn={KEY_NAME}"
