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
  assert((await admin.getNamespaceProperties()).name);
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

  await admin.deleteQueue("admin-queue");
  assert.equal(await admin.queueExists("admin-queue"), false);
});

adminTest("a topic with subscription and rules from birth to death", async () => {
  await admin.createTopic("admin-topic");
  await admin.createSubscription("admin-topic", "sub", { maxDeliveryCount: 3 });
  assert.deepEqual(await names(admin.listRules("admin-topic", "sub")), ["$Default"]);
  await admin.createRule("admin-topic", "sub", "sql", { sqlExpression: "amount > 10" }, { sqlExpression: "SET seen = 'yes'" });
  await admin.createRule("admin-topic", "sub", "correlation", { subject: "label" });
  assert.equal((await admin.getRule("admin-topic", "sub", "sql")).filter.sqlExpression, "amount > 10");
  assert.equal((await admin.getRule("admin-topic", "sub", "correlation")).filter.subject, "label");
  assert(await admin.ruleExists("admin-topic", "sub", "correlation"));
  await admin.deleteRule("admin-topic", "sub", "correlation");

  assert.deepEqual(await names(admin.listSubscriptions("admin-topic")), ["sub"]);
  assert.equal((await admin.getTopicRuntimeProperties("admin-topic")).subscriptionCount, 1);
  assert.equal((await admin.getSubscriptionRuntimeProperties("admin-topic", "sub")).totalMessageCount, 0);
  await admin.deleteSubscription("admin-topic", "sub");
  await admin.deleteTopic("admin-topic");
  assert.equal(await admin.topicExists("admin-topic"), false);
});
