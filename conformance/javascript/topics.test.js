// N11: rules made and removed by the rule manager decide which copies a subscription gets.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, send, receive, take } = require("./bus");

async function ruleNames(manager) {
  const names = [];
  for await (const rule of manager.listRules()) names.push(rule.name);
  return names.sort();
}

test("every subscription gets its own copy", () =>
  withClient(async (client) => {
    await send(client, "fan-out", { body: "news" });
    assert.deepEqual(await take(client.createReceiver("fan-out", "first")), ["news"]);
    assert.deepEqual(await take(client.createReceiver("fan-out", "second")), ["news"]);
  }));

test("declared rules choose and change the copies", () =>
  withClient(async (client) => {
    await send(client, "orders", [
      { body: "urgent", applicationProperties: { Priority: "High" } },
      { body: "dear", subject: "order", applicationProperties: { region: "eu", amount: 500 } },
    ]);
    assert.deepEqual(await take(client.createReceiver("orders", "high")), ["urgent"]);
    assert.deepEqual(await take(client.createReceiver("orders", "europe")), ["dear"]);
    assert.deepEqual(await take(client.createReceiver("orders", "all"), 2), ["urgent", "dear"]);
    const [marked] = await receive(client.createReceiver("orders", "marked"));
    assert.equal(marked.subject, "marked");
    assert.deepEqual({ ...marked.applicationProperties }, { amount: 500, size: "large", RuleName: "mark-large" });
  }));

test("rules are created, listed and deleted", () =>
  withClient(async (client) => {
    const manager = client.createRuleManager("managed", "rules");
    assert.deepEqual(await ruleNames(manager), ["$Default"]);
    await manager.deleteRule("$Default");
    await manager.createRule("sql", { sqlExpression: "color = 'red' AND size > 3" });
    await manager.createRule("correlation", { subject: "order", applicationProperties: { region: "eu" } });
    assert.deepEqual(await ruleNames(manager), ["correlation", "sql"]);
    for await (const rule of manager.listRules()) {
      if (rule.name === "sql") assert.equal(rule.filter.sqlExpression, "color = 'red' AND size > 3");
      if (rule.name === "correlation") assert.equal(rule.filter.subject, "order");
    }
    await assert.rejects(manager.createRule("sql", { sqlExpression: "1 = 1" }));
    await assert.rejects(manager.deleteRule("no-such-rule"));
    await assert.rejects(manager.createRule("broken", { sqlExpression: "color = = 'red'" }));

    await send(client, "managed", [
      { body: "by sql", applicationProperties: { color: "red", size: 4 } },
      { body: "neither", applicationProperties: { color: "red", size: 3 } },
      { body: "by correlation", subject: "order", applicationProperties: { region: "eu" } },
    ]);
    assert.deepEqual(await take(client.createReceiver("managed", "rules"), 2), ["by sql", "by correlation"]);
  }, impatient));

test("a rule's action changes the copy", () =>
  withClient(async (client) => {
    const manager = client.createRuleManager("managed-actions", "actions");
    await manager.deleteRule("$Default");
    await manager.createRule("mark", { sqlExpression: "total > 100" }, { sqlExpression: "SET vip = TRUE; REMOVE total" });
    await send(client, "managed-actions", { body: "dear", applicationProperties: { total: 500, other: "kept" } });
    const receiver = client.createReceiver("managed-actions", "actions");
    const [message] = await receive(receiver);
    assert.deepEqual({ ...message.applicationProperties }, { other: "kept", vip: true, RuleName: "mark" });
    await receiver.completeMessage(message);
  }));
