"""N18: the admin client, over HTTPS, with the development certificate verified."""

import ssl
import urllib.error
import urllib.request
from datetime import timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import (
    CorrelationRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
)

from endpoint import CERTIFICATE, KEY, KEY_NAME


def answers_to_admin_requests(endpoint):
    """Without a token the admin API says 401; a broker built without it says 404."""
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    try:
        urllib.request.urlopen(f"https://{endpoint.host}:{endpoint.https}/$namespaceinfo", context=trust, timeout=10)
    except urllib.error.HTTPError as refusal:
        return refusal.code == 401
    except OSError:
        return False
    return True


@pytest.fixture
def admin(endpoint):
    if not answers_to_admin_requests(endpoint):
        pytest.skip("this broker has no admin API")
    string = f"Endpoint=sb://{endpoint.host}:{endpoint.https};SharedAccessKeyName={KEY_NAME};SharedAccessKey={KEY}"
    with ServiceBusAdministrationClient.from_connection_string(
        string, connection_verify=str(CERTIFICATE), retry_total=0
    ) as admin:
        yield admin


def test_the_namespace_introduces_itself(admin):
    assert admin.get_namespace_properties().name


def test_a_queue_from_birth_to_death(admin, client, send, receive):
    created = admin.create_queue("admin-queue", lock_duration=timedelta(seconds=30), max_delivery_count=7)
    assert (created.lock_duration, created.max_delivery_count) == (timedelta(seconds=30), 7)
    with pytest.raises(ResourceExistsError):
        admin.create_queue("admin-queue")
    assert "admin-queue" in [queue.name for queue in admin.list_queues()]

    queue = admin.get_queue("admin-queue")
    queue.max_delivery_count = 9
    admin.update_queue(queue)
    assert admin.get_queue("ADMIN-queue").max_delivery_count == 9

    send("admin-queue", ServiceBusMessage("counted"), ServiceBusMessage("dead"))
    with client.get_queue_receiver("admin-queue") as receiver:
        _, dead = receive(receiver, 2)
        receiver.dead_letter_message(dead)
    counts = admin.get_queue_runtime_properties("admin-queue")
    assert (counts.active_message_count, counts.dead_letter_message_count) == (1, 1)
    assert counts.total_message_count == 2

    admin.delete_queue("admin-queue")
    with pytest.raises(ResourceNotFoundError):
        admin.get_queue("admin-queue")


def test_a_topic_with_subscription_and_rules_from_birth_to_death(admin, client, receive):
    admin.create_topic("admin-topic")
    admin.create_subscription("admin-topic", "sub", max_delivery_count=3)
    assert [rule.name for rule in admin.list_rules("admin-topic", "sub")] == ["$Default"]
    admin.delete_rule("admin-topic", "sub", "$Default")
    admin.create_rule(
        "admin-topic", "sub", "sql", filter=SqlRuleFilter("amount > 10"), action=SqlRuleAction("SET seen = 'yes'")
    )
    admin.create_rule("admin-topic", "sub", "correlation", filter=CorrelationRuleFilter(label="label"))
    assert admin.get_rule("admin-topic", "sub", "sql").filter.sql_expression == "amount > 10"
    assert admin.get_rule("admin-topic", "sub", "correlation").filter.label == "label"

    with client.get_topic_sender("admin-topic") as sender:
        sender.send_messages(ServiceBusMessage("match", application_properties={"amount": 11}))
        sender.send_messages(ServiceBusMessage("no match", application_properties={"amount": 10}))
    with client.get_subscription_receiver("admin-topic", "sub") as receiver:
        [message] = receive(receiver)
        assert (str(message), message.application_properties[b"seen"]) == ("match", b"yes")
        receiver.complete_message(message)
    assert admin.get_topic_runtime_properties("admin-topic").subscription_count == 1
    assert admin.get_subscription_runtime_properties("admin-topic", "sub").total_message_count == 0

    admin.delete_subscription("admin-topic", "sub")
    assert list(admin.list_subscriptions("admin-topic")) == []
    admin.delete_topic("admin-topic")
    assert "admin-topic" not in [topic.name for topic in admin.list_topics()]
