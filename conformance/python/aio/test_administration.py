"""N18: the admin client of asyncio, over HTTPS: every call once."""

from datetime import timedelta

import pytest
import pytest_asyncio
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.management import CorrelationRuleFilter, SqlRuleAction, SqlRuleFilter

import administration


@pytest_asyncio.fixture
async def admin(endpoint):
    if not administration.is_there(endpoint):
        pytest.skip("this broker has no admin API")
    string = administration.connection_string(endpoint)
    async with ServiceBusAdministrationClient.from_connection_string(string, **administration.OPTIONS) as admin:
        yield admin


async def names(listing):
    return [found.name async for found in listing]


async def test_the_namespace_introduces_itself(admin):
    assert (await admin.get_namespace_properties()).name


async def test_a_queue_from_birth_to_death(admin, send):
    created = await admin.create_queue("admin-queue", lock_duration=timedelta(seconds=30))
    assert created.lock_duration == timedelta(seconds=30)
    with pytest.raises(ResourceExistsError):
        await admin.create_queue("admin-queue")
    queue = await admin.get_queue("admin-queue")
    queue.max_delivery_count = 9
    await admin.update_queue(queue)
    assert (await admin.get_queue("admin-queue")).max_delivery_count == 9
    await send("admin-queue", ServiceBusMessage("counted"))
    counts = await admin.get_queue_runtime_properties("admin-queue")
    assert (counts.active_message_count, counts.total_message_count) == (1, 1)
    assert "admin-queue" in await names(admin.list_queues())
    assert "admin-queue" in await names(admin.list_queues_runtime_properties())
    await admin.delete_queue("admin-queue")
    with pytest.raises(ResourceNotFoundError):
        await admin.get_queue("admin-queue")


async def test_a_topic_with_subscription_and_rules_from_birth_to_death(admin):
    topic = await admin.create_topic("admin-topic")
    topic.user_metadata = "note"
    await admin.update_topic(topic)
    assert (await admin.get_topic("admin-topic")).user_metadata == "note"
    subscription = await admin.create_subscription("admin-topic", "sub")
    subscription.max_delivery_count = 3
    await admin.update_subscription("admin-topic", subscription)
    assert (await admin.get_subscription("admin-topic", "sub")).max_delivery_count == 3

    await admin.create_rule("admin-topic", "sub", "sql", filter=SqlRuleFilter("a = 1"))
    await admin.create_rule("admin-topic", "sub", "correlation", filter=CorrelationRuleFilter(label="l"))
    rule = await admin.get_rule("admin-topic", "sub", "sql")
    rule.action = SqlRuleAction("SET b = 1")
    await admin.update_rule("admin-topic", "sub", rule)
    assert (await admin.get_rule("admin-topic", "sub", "sql")).action.sql_expression == "SET b = 1"
    assert await names(admin.list_rules("admin-topic", "sub")) == ["$Default", "correlation", "sql"]
    await admin.delete_rule("admin-topic", "sub", "$Default")

    assert (await admin.get_topic_runtime_properties("admin-topic")).subscription_count == 1
    counts = await admin.get_subscription_runtime_properties("admin-topic", "sub")
    assert counts.total_message_count == 0
    assert await names(admin.list_subscriptions("admin-topic")) == ["sub"]
    assert await names(admin.list_subscriptions_runtime_properties("admin-topic")) == ["sub"]
    assert "admin-topic" in await names(admin.list_topics())
    assert "admin-topic" in await names(admin.list_topics_runtime_properties())
    await admin.delete_subscription("admin-topic", "sub")
    await admin.delete_topic("admin-topic")
    with pytest.raises(ResourceNotFoundError):
        await admin.get_topic("admin-topic")
