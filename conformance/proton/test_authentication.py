"""A6 and B14: who may come in, and how far."""

import pytest
from proton import ConnectionException
from proton.utils import LinkDetached

from bus import Bus


def test_a_key_name_with_its_key_needs_no_token():
    with Bus() as bus:
        bus.send("send-receive", "hello")
        assert bus.take("send-receive", 1) == ["hello"]


@pytest.mark.parametrize("user, password", [("RootManageSharedAccessKey", "wrong"), ("Nobody", "SAS_KEY_VALUE")])
def test_a_wrong_key_is_turned_away_at_the_door(user, password):
    with pytest.raises(ConnectionException):
        Bus(user=user, password=password)


@pytest.mark.parametrize("make_link", ["create_sender", "create_receiver"])
def test_an_anonymous_client_without_a_token_gets_no_link(make_link):
    with Bus(user=None, password=None, mechanism="ANONYMOUS") as bus:
        with pytest.raises(LinkDetached) as refused:
            getattr(bus.connection, make_link)("send-receive")
        assert refused.value.condition == "amqp:unauthorized-access"


def test_the_same_story_over_tls_with_the_certificate_verified():
    with Bus(scheme="amqps") as bus:
        bus.send("transport-tls", "hello")
        assert bus.take("transport-tls", 1) == ["hello"]
