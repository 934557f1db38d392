"""N21: the same story over TLS and over WebSocket, with the development certificate verified."""

import pytest
from azure.servicebus import ServiceBusMessage, TransportType
from azure.servicebus.aio import ServiceBusClient

from endpoint import CERTIFICATE


@pytest.mark.parametrize("transport", ["tls", "websocket"])
async def test_messages_pass_small_and_large(endpoint, receive, transport):
    kind, port = {
        "tls": (TransportType.Amqp, endpoint.amqps),
        "websocket": (TransportType.AmqpOverWebsocket, endpoint.https),
    }[transport]
    client = ServiceBusClient.from_connection_string(
        endpoint.secure_connection_string(),
        transport_type=kind,
        custom_endpoint_address=f"sb://{endpoint.host}:{port}",
        connection_verify=str(CERTIFICATE),
        retry_total=0,
    )
    queue = f"transport-{transport}"
    bodies = ["small", "x" * 200_000]
    async with client:
        async with client.get_queue_sender(queue) as sender:
            for body in bodies:
                await sender.send_messages(ServiceBusMessage(body))
        async with client.get_queue_receiver(queue) as receiver:
            messages = await receive(receiver, 2)
            assert [str(message) for message in messages] == bodies
            for message in messages:
                await receiver.complete_message(message)
