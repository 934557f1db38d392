"""The sender of the Priority Queue pattern: batches of ten low and ten high messages."""

import sys
import time

from azure.servicebus import ServiceBusClient, ServiceBusMessage

from connection import CONNECTION_STRING


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with ServiceBusClient.from_connection_string(CONNECTION_STRING) as client:
        with client.get_topic_sender("messages") as sender:
            for round_number in range(1, rounds + 1):
                for priority in ("Low", "High"):
                    batch = sender.create_message_batch()
                    for number in range(10):
                        text = f"{priority} message {number} of round {round_number}"
                        batch.add_message(
                            ServiceBusMessage(text, application_properties={"Priority": priority})
                        )
                    sender.send_messages(batch)
                    print(f"sent ten messages of priority {priority}")
                time.sleep(0.5)


if __name__ == "__main__":
    main()
