"""N22: two clients share a queue; every message is handled, and none twice."""

from concurrent.futures import ThreadPoolExecutor

from azure.servicebus import ServiceBusClient, ServiceBusMessage

MESSAGES = 10_000
CLIENTS = 2


def test_ten_thousand_messages_are_shared_without_loss_or_repeat(client, endpoint, is_empty):
    with client.get_queue_sender("competing") as sender:
        for start in range(0, MESSAGES, 1000):
            batch = sender.create_message_batch()
            for number in range(start, start + 1000):
                batch.add_message(ServiceBusMessage(str(number)))
            sender.send_messages(batch)

    def work(_):
        handled = []
        with ServiceBusClient.from_connection_string(endpoint.connection_string()) as own_client:
            with own_client.get_queue_receiver("competing", prefetch_count=200) as receiver:
                while messages := receiver.receive_messages(max_message_count=200, max_wait_time=3):
                    for message in messages:
                        handled.append(int(str(message)))
                        receiver.complete_message(message)
        return handled

    with ThreadPoolExecutor(CLIENTS) as pool:
        shares = list(pool.map(work, range(CLIENTS)))

    assert sorted(shares[0] + shares[1]) == list(range(MESSAGES))
    assert all(shares), "one client got nothing"
    with client.get_queue_receiver("competing") as receiver:
        assert is_empty(receiver)
