"""One serving peer for all tests, and a connection to it for each."""

import pytest
from bus import Bus

from peer import PASSWORD, USER, ServingPeer

FRAME_BYTES_MAX = 4096


@pytest.fixture(scope="session")
def port():
    with ServingPeer() as peer:
        yield peer.port


@pytest.fixture
def bus(port):
    with Bus(port=port, user=USER, password=PASSWORD, max_frame_size=FRAME_BYTES_MAX) as bus:
        yield bus
