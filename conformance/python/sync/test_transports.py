"""N21: the same story over TLS and over WebSocket, with the development certificate verified."""

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, TransportType

from endpoint import CERTIFICATE


@pytest.fixture(params=["tls", "websocket"])
def secure(request, endpoint):
    transport, port = {
        "tls": (TransportType.Amqp, endpoint.amqps),
        "websocket": (TransportType.AmqpOverWebsocket, endpoint.https),
    }[request.param]
    client = ServiceBusClient.from_connection_string(
        endpoint.secure_connection_string(),
        transport_type=transport,
        custom_endpoint_address=f"sb://{endpoint.host}:{port}",
        connection_verify=str(CERTIFICATE),
        retry_total=0,
    )
    with client:
        yield client, f"transport-{request.param}"


def test_messages_pass_small_and_large(secure, receive, is_empty):
    client, queue = secure
    bodies = ["small", "x" * 200_000]
    with client.get_queue_sender(queue) as sender:
        for body in bodies:
            sender.send_messages(ServiceBusMessage(body))
    with client.get_queue_receiver(queue) as receiver:
        messages = receive(receiver, 2)
        assert [str(message) for message in messages] == bodies
        for message in messages:
            receiver.complete_message(message)
        assert is_empty(receiver)
