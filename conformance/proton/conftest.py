"""A connection for every test."""

import pytest

from bus import Bus


@pytest.fixture
def bus():
    with Bus() as bus:
        yield bus
