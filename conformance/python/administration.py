"""Whether the broker under test has an admin API, and how its clients reach it."""

import ssl
import urllib.error
import urllib.request

from endpoint import CERTIFICATE, KEY, KEY_NAME


def is_there(endpoint):
    """Without a token the admin API says 401; a broker built without it says 404."""
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    try:
        urllib.request.urlopen(f"https://{endpoint.host}:{endpoint.https}/$namespaceinfo", context=trust, timeout=10)
    except urllib.error.HTTPError as refusal:
        return refusal.code == 401
    except OSError:
        return False
    return True


def connection_string(endpoint, key=KEY):
    """The string an admin client takes: HTTPS, with a port of ours."""
    return f"Endpoint=sb://{endpoint.host}:{endpoint.https};SharedAccessKeyName={KEY_NAME};SharedAccessKey={key}"


#: The development certificate verified, and the first answer instead of another try.
OPTIONS = {"connection_verify": str(CERTIFICATE), "retry_total": 0}
