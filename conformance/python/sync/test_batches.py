"""N2: batches out, chunks in."""

import pytest
from azure.servicebus import ServiceBusMessage

MESSAGES = 100
CHUNK = 10


def test_a_batch_of_100_arrives_in_order_in_chunks_of_10(client, receive, is_empty):
    with client.get_queue_sender("batch") as sender:
        batch = sender.create_message_batch()
        for number in range(MESSAGES):
            batch.add_message(ServiceBusMessage(str(number)))
        sender.send_messages(batch)

    bodies, sequences = [], []
    with client.get_queue_receiver("batch") as receiver:
        while len(bodies) < MESSAGES:
            for message in receive(receiver, CHUNK):
                bodies.append(str(message))
                sequences.append(message.sequence_number)
                receiver.complete_message(message)
        assert is_empty(receiver)
    assert bodies == [str(number) for number in range(MESSAGES)]
    assert sequences == list(range(sequences[0], sequences[0] + MESSAGES))


def test_a_batch_tells_when_it_is_full(client):
    with client.get_queue_sender("batch-limit") as sender:
        batch = sender.create_message_batch(max_size_in_bytes=1024)
        with pytest.raises(ValueError):
            for _ in range(1024):
                batch.add_message(ServiceBusMessage("x" * 100))
        assert 0 < len(batch) < 1024


def test_every_message_of_a_batch_gets_an_id_of_its_own(client, send, receive):
    send("ids", *[ServiceBusMessage(str(number)) for number in range(3)])
    with client.get_queue_receiver("ids") as receiver:
        messages = receive(receiver, 3)
        for message in messages:
            receiver.complete_message(message)
    ids = {message.message_id for message in messages}
    assert len(ids) == 3
    assert all(isinstance(id, str) and id for id in ids)
