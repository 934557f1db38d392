"""N14: the broker dies in the middle of a stream; the clients come back by themselves."""

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

from broker import Broker

MESSAGES = 300


async def test_a_stream_survives_a_crash_in_its_middle(tmp_path):
    with Broker(tmp_path) as broker:
        options = dict(retry_total=10, retry_backoff_factor=0.1)
        client = ServiceBusClient.from_connection_string(broker.endpoint.connection_string(), **options)
        seen = set()

        async def handle_until(receiver, count):
            while len(seen) < count:
                for message in await receiver.receive_messages(max_message_count=20, max_wait_time=10):
                    seen.add(str(message))
                    try:
                        await receiver.complete_message(message)
                    except ServiceBusError:
                        pass  # its lock fell with the broker; the message comes again

        async with client, client.get_queue_receiver("streaming-restart") as receiver:
            async with client.get_queue_sender("streaming-restart") as sender:
                await sender.send_messages([ServiceBusMessage(str(number)) for number in range(MESSAGES)])
            await handle_until(receiver, MESSAGES // 3)
            broker.restart()
            await handle_until(receiver, MESSAGES)
        assert seen == {str(number) for number in range(MESSAGES)}
