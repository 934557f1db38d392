// N18: the admin client, over HTTPS. The runner makes node trust the development certificate.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { ServiceBusAdministrationClient } = require("@azure/service-bus");
const { host, port, secureConnectionString } = require("./endpoint");
const { withClient, send, receive } = require("./bus");

const admin = new ServiceBusAdministrationClient(secureConnectionString(port("HTTPS")), { retryOptions: { maxRetries: 0 } });

/** Without a token the admin API says 401; a broker built without it says 404. */
async function isThere() {
  const answer = await fetch(`https://${host}:${port("HTTPS")}/$namespaceinfo`).catch(() => ({ status: 404 }));
  return answer.status === 401;
}

/** A test that needs the admin API, skipped where the broker has none. */
const adminTest = (name, story) =>
  test(name, async (context) => ((await isThere()) ? story() : context.skip("this broker has no admin API")));

async function names(listing) {
  const found = [];
  for await (const { name, subscriptionName } of listing) found.push(subscriptionName ?? name);
  return found;
}

adminTest("the namespace introduces itself", async () => {
  const { name, messagingSku, createdAt } = await admin.getNamespaceProperties();
  assert(name);
  assert.equal(messagingSku, "Standard");
  assert(createdAt instanceof Date);
});

adminTest("a wrong key is refused at once", async () => {
  const wrong = secureConnectionString(port("HTTPS")).replace("SAS_KEY_VALUE", "wrong");
  const stranger = new ServiceBusAdministrationClient(wrong, { retryOptions: { maxRetries: 0 } });
  await assert.rejects(stranger.getNamespaceProperties(), { statusCode: 401 });
});

adminTest("a queue from birth to death", async () => {
  const created = await admin.createQueue("admin-queue", { lockDuration: "PT30S", maxDeliveryCount: 7 });
  assert.deepEqual([created.lockDuration, created.maxDeliveryCount], ["PT30S", 7]);
  await assert.rejects(admin.createQueue("admin-queue"), { statusCode: 409 });
  assert((await names(admin.listQueues())).includes("admin-queue"));

  const queue = await admin.getQueue("admin-queue");
  queue.maxDeliveryCount = 9;
  await admin.updateQueue(queue);
  assert.equal((await admin.getQueue("ADMIN-queue")).maxDeliveryCount, 9);

  await withClient(async (client) => {
    await send(client, "admin-queue", [{ body: "counted" }, { body: "dead" }]);
    const receiver = client.createReceiver("admin-queue");
    const [, dead] = await receive(receiver, 2);
    await receiver.deadLetterMessage(dead);
  });
  const counts = await admin.getQueueRuntimeProperties("admin-queue");
  assert.deepEqual([counts.activeMessageCount, counts.deadLetterMessageCount, counts.totalMessageCount], [1, 1, 2]);
  assert(counts.createdAt <= counts.modifiedAt && counts.sizeInBytes > 0);
  assert((await names(admin.listQueuesRuntimeProperties())).includes("admin-queue"));

  assert.equal(await admin.queueExists("admin-queue"), true);
  await admin.deleteQueue("admin-queue");
  assert.equal(await admin.queueExists("admin-queue"), false);
  await assert.rejects(admin.deleteQueue("admin-queue"), { statusCode: 404 });
});

adminTest("every property of a queue comes back", async () => {
  await admin.createQueue("admin-target");
  const wanted = {
    autoDeleteOnIdle: "PT10M",
    deadLetteringOnMessageExpiration: true,
    defaultMessageTimeToLive: "PT11M",
    duplicateDetectionHistoryTimeWindow: "PT12M",
    lockDuration: "PT13S",
    maxDeliveryCount: 14,
    maxSizeInMegabytes: 3072,
    requiresDuplicateDetection: true,
    requiresSession: true,
    status: "SendDisabled",
    userMetadata: "a <note> & more",
    enableBatchedOperations: false,
  };
  await admin.createQueue("admin/every.property", {
    ...wanted,
    forwardDeadLetteredMessagesTo: "admin-target",
    authorizationRules: [{ claimType: "SharedAccessKey", accessRights: ["Send"], keyName: "k", primaryKey: "p", secondaryKey: "s" }],
  });
  const queue = await admin.getQueue("admin/every.property");
  assert.equal(queue.name, "admin/every.property");
  for (const [name, value] of Object.entries(wanted)) assert.deepEqual(queue[name], value, name);
  assert(queue.forwardDeadLetteredMessagesTo.endsWith("/admin-target"));
  assert.deepEqual([queue.authorizationRules[0].keyName, queue.authorizationRules[0].primaryKey], ["k", "p"]);
  // What was read can be written back as it is.
  assert.equal((await admin.updateQueue({ ...queue, maxDeliveryCount: 15 })).maxDeliveryCount, 15);
  await assert.rejects(admin.updateQueue({ ...queue, requiresSession: false }), { statusCode: 400 });
  await admin.deleteQueue("admin/every.property");
  await admin.deleteQueue("admin-target");
});

adminTest("lists come in pages", async () => {
  const wanted = Array.from({ length: 7 }, (_, number) => `admin-page-${number}`);
  for (const name of wanted) await admin.createQueue(name);
  const listed = [];
  for await (const page of admin.listQueues().byPage({ maxPageSize: 3 })) {
    assert(page.length <= 3);
    listed.push(...page.map(({ name }) => name));
  }
  assert.deepEqual(listed.filter((name) => name.startsWith("admin-page")), wanted);
  for (const name of wanted) await admin.deleteQueue(name);
});

adminTest("a topic with subscription from birth to death", async () => {
  const topic = await admin.createTopic("admin-topic", { defaultMessageTimeToLive: "PT7M" });
  assert.equal(topic.defaultMessageTimeToLive, "PT7M");
  assert.equal((await admin.updateTopic({ ...topic, userMetadata: "note" })).userMetadata, "note");
  assert.equal((await admin.getTopic("admin-topic")).userMetadata, "note");
  await admin.createSubscription("admin-topic", "sub", { maxDeliveryCount: 3 });
  const subscription = await admin.getSubscription("admin-topic", "sub");
  assert.deepEqual([subscription.topicName, subscription.subscriptionName, subscription.maxDeliveryCount], ["admin-topic", "sub", 3]);
  assert.equal((await admin.updateSubscription({ ...subscription, lockDuration: "PT17S" })).lockDuration, "PT17S");
  await assert.rejects(admin.createSubscription("admin-topic", "sub"), { statusCode: 409 });
  await assert.rejects(admin.createSubscription("admin-absent", "sub"), { statusCode: 404 });
  assert.equal(await admin.subscriptionExists("admin-topic", "sub"), true);
  assert.equal(await admin.subscriptionExists("admin-topic", "absent"), false);

  assert.deepEqual(await names(admin.listSubscriptions("admin-topic")), ["sub"]);
  assert.deepEqual(await names(admin.listSubscriptionsRuntimeProperties("admin-topic")), ["sub"]);
  assert((await names(admin.listTopics())).includes("admin-topic"));
  assert((await names(admin.listTopicsRuntimeProperties())).includes("admin-topic"));
  assert.equal((await admin.getTopicRuntimeProperties("admin-topic")).subscriptionCount, 1);
  assert.equal((await admin.getSubscriptionRuntimeProperties("admin-topic", "sub")).totalMessageCount, 0);
  await admin.deleteSubscription("admin-topic", "sub");
  await admin.deleteTopic("admin-topic");
  assert.equal(await admin.topicExists("admin-topic"), false);
});

adminTest("rules of every kind come back", async () => {
  await admin.createTopic("admin-rules");
  await admin.createSubscription("admin-rules", "sub");
  assert.deepEqual(await names(admin.listRules("admin-rules", "sub")), ["$Default"]);
  assert.equal((await admin.getRule("admin-rules", "sub", "$Default")).filter.sqlExpression, "1=1");
  const filters = {
    sql: { sqlExpression: "color = @color AND amount > @amount", sqlParameters: { "@color": "red", "@amount": 10 } },
    system: {
      correlationId: "c",
      messageId: "m",
      to: "t",
      replyTo: "r",
      subject: "l",
      sessionId: "s",
      replyToSessionId: "rs",
      contentType: "ct",
    },
    properties: { applicationProperties: { Text: "x", Number: 7, Half: 0.5, Flag: false } },
  };
  for (const [name, filter] of Object.entries(filters)) {
    await admin.createRule("admin-rules", "sub", name, filter, { sqlExpression: "SET seen = 'yes'" });
    const found = await admin.getRule("admin-rules", "sub", name);
    assert.equal(found.name, name);
    assert.equal(found.action.sqlExpression, "SET seen = 'yes'");
    for (const [field, value] of Object.entries(filter)) assert.deepEqual(found.filter[field], value, `${name} ${field}`);
  }
  const rule = await admin.getRule("admin-rules", "sub", "sql");
  await admin.updateRule("admin-rules", "sub", { ...rule, filter: { sqlExpression: "a = 2" } });
  assert.equal((await admin.getRule("admin-rules", "sub", "sql")).filter.sqlExpression, "a = 2");
  await assert.rejects(admin.createRule("admin-rules", "sub", "sql"), { statusCode: 409 });
  await assert.rejects(admin.createRule("admin-rules", "sub", "wrong", { sqlExpression: "a ==== 1" }), { statusCode: 400 });
  assert.deepEqual(await names(admin.listRules("admin-rules", "sub")), ["$Default", "properties", "sql", "system"]);
  assert.equal(await admin.ruleExists("admin-rules", "sub", "system"), true);
  await admin.deleteRule("admin-rules", "sub", "system");
  assert.equal(await admin.ruleExists("admin-rules", "sub", "system"), false);
  await admin.deleteTopic("admin-rules");
});
