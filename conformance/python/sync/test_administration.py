"""N18: the admin client, over HTTPS, with the development certificate verified."""

from datetime import datetime, timedelta, timezone

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus import ServiceBusMessage
from azure.servicebus.management import (
    AuthorizationRule,
    CorrelationRuleFilter,
    EntityStatus,
    FalseRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

import administration


@pytest.fixture
def admin(endpoint):
    if not administration.is_there(endpoint):
        pytest.skip("this broker has no admin API")
    string = administration.connection_string(endpoint)
    with ServiceBusAdministrationClient.from_connection_string(string, **administration.OPTIONS) as admin:
        yield admin


@pytest.fixture
def subscription(admin):
    """A subscription of its own for rules."""
    admin.create_topic("admin-rules")
    admin.create_subscription("admin-rules", "sub")
    yield ("admin-rules", "sub")
    admin.delete_topic("admin-rules")


def test_the_namespace_introduces_itself(admin):
    namespace = admin.get_namespace_properties()
    assert namespace.name
    assert namespace.messaging_sku == "Standard"
    assert namespace.created_at_utc <= namespace.modified_at_utc


def test_a_wrong_key_is_refused_at_once(endpoint, admin):
    string = administration.connection_string(endpoint, key="wrong")
    with ServiceBusAdministrationClient.from_connection_string(string, **administration.OPTIONS) as stranger:
        with pytest.raises(ClientAuthenticationError):
            stranger.get_namespace_properties()


def test_a_queue_from_birth_to_death(admin, client, send, receive):
    created = admin.create_queue("admin-queue", lock_duration=timedelta(seconds=30), max_delivery_count=7)
    assert (created.lock_duration, created.max_delivery_count) == (timedelta(seconds=30), 7)
    with pytest.raises(ResourceExistsError):
        admin.create_queue("admin-queue")
    with pytest.raises(ResourceExistsError):
        admin.create_topic("admin-queue")
    assert "admin-queue" in [queue.name for queue in admin.list_queues()]

    queue = admin.get_queue("admin-queue")
    queue.max_delivery_count = 9
    admin.update_queue(queue)
    assert admin.get_queue("ADMIN-queue").max_delivery_count == 9

    send("admin-queue", ServiceBusMessage("counted"), ServiceBusMessage("dead"))
    with client.get_queue_receiver("admin-queue") as receiver:
        _, dead = receive(receiver, 2)
        receiver.dead_letter_message(dead)
    with client.get_queue_sender("admin-queue") as sender:
        sender.schedule_messages(ServiceBusMessage("later"), datetime.now(timezone.utc) + timedelta(hours=1))
    counts = admin.get_queue_runtime_properties("admin-queue")
    assert (counts.active_message_count, counts.dead_letter_message_count) == (1, 1)
    assert (counts.scheduled_message_count, counts.total_message_count) == (1, 3)
    assert (counts.transfer_message_count, counts.transfer_dead_letter_message_count) == (0, 0)
    assert counts.size_in_bytes > 0
    assert counts.created_at_utc <= counts.updated_at_utc <= counts.accessed_at_utc
    [listed] = [queue for queue in admin.list_queues_runtime_properties() if queue.name == "admin-queue"]
    assert listed.total_message_count == 3

    admin.delete_queue("admin-queue")
    with pytest.raises(ResourceNotFoundError):
        admin.get_queue("admin-queue")
    with pytest.raises(ResourceNotFoundError):
        admin.delete_queue("admin-queue")
    with pytest.raises(ResourceNotFoundError):
        admin.update_queue(queue)


def test_every_property_of_a_queue_comes_back(admin):
    admin.create_queue("admin-target")
    key = AuthorizationRule(key_name="k", rights=["Send", "Listen"], primary_key="p" * 44, secondary_key="s" * 44)
    properties = {
        "authorization_rules": [key],
        "auto_delete_on_idle": timedelta(minutes=10),
        "dead_lettering_on_message_expiration": True,
        "default_message_time_to_live": timedelta(minutes=11),
        "duplicate_detection_history_time_window": timedelta(minutes=12),
        "forward_dead_lettered_messages_to": "admin-target",
        "lock_duration": timedelta(seconds=13),
        "max_delivery_count": 14,
        "max_size_in_megabytes": 3072,
        "max_message_size_in_kilobytes": 1024,
        "requires_duplicate_detection": True,
        "requires_session": True,
        "status": EntityStatus.SEND_DISABLED,
        "user_metadata": "a <note> & more",
        "enable_batched_operations": False,
    }
    admin.create_queue("admin/every.property", **properties)
    queue = admin.get_queue("admin/every.property")
    for name, value in properties.items():
        if name == "authorization_rules":
            [found] = queue.authorization_rules
            assert (found.key_name, found.primary_key, set(found.rights)) == ("k", "p" * 44, {"Send", "Listen"})
        elif name.startswith("forward"):
            assert getattr(queue, name).endswith("/admin-target"), name
        else:
            assert getattr(queue, name) == value, name

    # What was read can be written back as it is, and what is taken away is gone.
    queue.forward_dead_lettered_messages_to = None
    queue.user_metadata = None
    queue.status = EntityStatus.ACTIVE
    admin.update_queue(queue)
    changed = admin.get_queue("admin/every.property")
    assert (changed.forward_dead_lettered_messages_to, changed.user_metadata) == (None, None)
    assert (changed.status, changed.lock_duration) == (EntityStatus.ACTIVE, timedelta(seconds=13))
    changed.requires_session = False
    with pytest.raises(HttpResponseError) as refused:
        admin.update_queue(changed)
    assert refused.value.status_code == 400 and "RequiresSession" in str(refused.value)
    admin.delete_queue("admin/every.property")
    admin.delete_queue("admin-target")


@pytest.mark.parametrize(
    "wrong",
    [
        {"lock_duration": timedelta(minutes=6)},
        {"max_delivery_count": 0},
        {"forward_to": "nowhere"},
        {"user_metadata": "x" * 1025},
        {"auto_delete_on_idle": timedelta(minutes=4)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_property_out_of_bounds_is_refused_and_nothing_is_created(admin, wrong):
    with pytest.raises(HttpResponseError) as refused:
        admin.create_queue("admin-wrong", **wrong)
    assert refused.value.status_code == 400
    with pytest.raises(ResourceNotFoundError):
        admin.get_queue("admin-wrong")


def test_lists_come_in_pages(admin):
    names = [f"admin-page-{number:03}" for number in range(103)]
    for name in names:
        admin.create_queue(name)
    listed = [queue.name for queue in admin.list_queues()]
    assert [name for name in listed if name.startswith("admin-page")] == names
    assert len(list(admin.list_queues_runtime_properties())) == len(listed)
    for name in names:
        admin.delete_queue(name)


def test_a_topic_with_subscription_and_rules_from_birth_to_death(admin, client, receive):
    topic = admin.create_topic("admin-topic", default_message_time_to_live=timedelta(minutes=7))
    assert topic.default_message_time_to_live == timedelta(minutes=7)
    topic.user_metadata = "note"
    admin.update_topic(topic)
    assert admin.get_topic("admin-topic").user_metadata == "note"
    admin.create_subscription("admin-topic", "sub", max_delivery_count=3)
    subscription = admin.get_subscription("admin-topic", "sub")
    assert (subscription.name, subscription.max_delivery_count) == ("sub", 3)
    subscription.lock_duration = timedelta(seconds=17)
    admin.update_subscription("admin-topic", subscription)
    assert admin.get_subscription("admin-topic", "SUB").lock_duration == timedelta(seconds=17)
    with pytest.raises(ResourceExistsError):
        admin.create_subscription("admin-topic", "sub")
    with pytest.raises(ResourceNotFoundError):
        admin.create_subscription("admin-absent", "sub")
    with pytest.raises(ResourceNotFoundError):
        admin.get_subscription("admin-topic", "absent")

    assert [rule.name for rule in admin.list_rules("admin-topic", "sub")] == ["$Default"]
    admin.delete_rule("admin-topic", "sub", "$Default")
    admin.create_rule(
        "admin-topic", "sub", "sql", filter=SqlRuleFilter("amount > 10"), action=SqlRuleAction("SET seen = 'yes'")
    )
    with client.get_topic_sender("admin-topic") as sender:
        sender.send_messages(ServiceBusMessage("match", application_properties={"amount": 11}))
        sender.send_messages(ServiceBusMessage("no match", application_properties={"amount": 10}))
        sender.schedule_messages(ServiceBusMessage("later"), datetime.now(timezone.utc) + timedelta(hours=1))
    with client.get_subscription_receiver("admin-topic", "sub") as receiver:
        [message] = receive(receiver)
        assert (str(message), message.application_properties[b"seen"]) == ("match", b"yes")
        receiver.complete_message(message)
    counts = admin.get_topic_runtime_properties("admin-topic")
    assert (counts.subscription_count, counts.scheduled_message_count) == (1, 1)
    assert admin.get_subscription_runtime_properties("admin-topic", "sub").total_message_count == 0
    assert [found.name for found in admin.list_subscriptions_runtime_properties("admin-topic")] == ["sub"]
    assert "admin-topic" in [found.name for found in admin.list_topics_runtime_properties()]

    admin.delete_subscription("admin-topic", "sub")
    assert list(admin.list_subscriptions("admin-topic")) == []
    admin.delete_topic("admin-topic")
    assert "admin-topic" not in [topic.name for topic in admin.list_topics()]


FILTERS = {
    "true": TrueRuleFilter(),
    "false": FalseRuleFilter(),
    "sql": SqlRuleFilter("color = @color AND amount > @amount", {"@color": "red", "@amount": 10}),
    "types": SqlRuleFilter(
        "a = @a AND b = @b AND c = @c AND d = @d",
        {"@a": 2.5, "@b": True, "@c": datetime(2026, 1, 31, 8, 15, 30, tzinfo=timezone.utc), "@d": timedelta(seconds=90)},
    ),
    "system": CorrelationRuleFilter(
        correlation_id="c", message_id="m", to="t", reply_to="r", label="l", session_id="s", reply_to_session_id="rs",
        content_type="ct",
    ),
    "properties": CorrelationRuleFilter(properties={"Text": "x", "Number": 7, "Flag": False}),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_a_rule_of_every_kind_comes_back(admin, subscription, kind):
    wanted = FILTERS[kind]
    admin.create_rule(*subscription, kind, filter=wanted)
    found = admin.get_rule(*subscription, kind)
    assert (found.name, type(found.filter)) == (kind, type(wanted))
    if isinstance(wanted, (TrueRuleFilter, FalseRuleFilter)):
        return
    if isinstance(wanted, SqlRuleFilter):
        assert found.filter.sql_expression == wanted.sql_expression
        assert (found.filter.parameters or {}) == (wanted.parameters or {})
    else:
        for field in ["correlation_id", "message_id", "to", "reply_to", "label", "session_id", "content_type"]:
            assert getattr(found.filter, field) == getattr(wanted, field), field
        assert (found.filter.properties or {}) == (wanted.properties or {})


def test_rules_are_changed_and_refused(admin, subscription):
    admin.create_rule(*subscription, "r", filter=SqlRuleFilter("a = 1"))
    with pytest.raises(ResourceExistsError):
        admin.create_rule(*subscription, "r")
    rule = admin.get_rule(*subscription, "r")
    rule.filter = SqlRuleFilter("a = 2")
    rule.action = SqlRuleAction("SET b = @b", {"@b": "x"})
    admin.update_rule(*subscription, rule)
    changed = admin.get_rule(*subscription, "r")
    assert (changed.filter.sql_expression, changed.action.sql_expression) == ("a = 2", "SET b = @b")
    assert sorted(found.name for found in admin.list_rules(*subscription)) == ["$Default", "r"]
    with pytest.raises(HttpResponseError) as refused:
        admin.create_rule(*subscription, "wrong", filter=SqlRuleFilter("a ==== 1"))
    assert refused.value.status_code == 400
    admin.delete_rule(*subscription, "r")
    with pytest.raises(ResourceNotFoundError):
        admin.get_rule(*subscription, "r")


@pytest.mark.parametrize("name", ["with/slash", "with~tilde", "größe", "a+b", "tenant:7", "it's(fine)!", "x" * 260])
def test_names_that_look_strange_come_back_as_they_were_given(admin, name):
    assert admin.create_queue(name).name == name
    assert admin.get_queue(name).name == name
    assert name in [queue.name for queue in admin.list_queues()]
    admin.delete_queue(name)


@pytest.mark.parametrize("name", ["a b", "a@b", "<script>", "x" * 261, "..", "$management", "a\nb"])
def test_names_that_could_mislead_are_refused(admin, name):
    with pytest.raises(HttpResponseError) as refused:
        admin.create_queue(name)
    assert refused.value.status_code in (400, 404)
