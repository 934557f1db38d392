"""N13: many workers on one queue, each handling messages as they come."""

from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import ServiceBusClient, ServiceBusMessage

MESSAGES = 1000
WORKERS = 10


def test_a_thousand_messages_are_handled_by_ten_workers(client, endpoint, is_empty):
    with client.get_queue_sender("streaming") as sender:
        batch = sender.create_message_batch()
        for number in range(MESSAGES):
            batch.add_message(ServiceBusMessage(str(number)))
        sender.send_messages(batch)

    def work(_):
        """Takes messages one by one until none has come for two seconds."""
        handled = []
        with ServiceBusClient.from_connection_string(endpoint.connection_string()) as own_client:
            with own_client.get_queue_receiver("streaming", max_wait_time=2, prefetch_count=20) as receiver:
                for message in receiver:
                    handled.append(str(message))
                    receiver.complete_message(message)
        return handled

    with ThreadPoolExecutor(WORKERS) as pool:
        handled = [body for bodies in pool.map(work, range(WORKERS)) for body in bodies]

    assert sorted(handled, key=int) == [str(number) for number in range(MESSAGES)]
    with client.get_queue_receiver("streaming") as receiver:
        assert is_empty(receiver)
