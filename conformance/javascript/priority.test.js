// Beyond Service Bus: the level of a message decides who is first, and it is kept for life.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive, take } = require("./bus");

const withHeader = (text, priority) => ({ bodyType: "data", body: text, header: { priority } });
const withProperty = (body, priority) => ({ body, applicationProperties: { Priority: priority } });

test("the header orders deliveries", () =>
  withClient(async (client) => {
    await send(client, "priority-header", [withHeader("low", 1), withHeader("default", 4), withHeader("high", 7)]);
    assert.deepEqual(await take(client.createReceiver("priority-header"), 3), ["high", "default", "low"]);
  }));

test("the property orders deliveries, as number or class", () =>
  withClient(async (client) => {
    await send(client, "priority-property", [
      withProperty("low", "low"),
      withProperty("seven", 7),
      withProperty("urgent", "Urgent"),
      withProperty("high", "HIGH"),
    ]);
    assert.deepEqual(await take(client.createReceiver("priority-property"), 4), ["urgent", "seven", "high", "low"]);
  }));

test("an abandoned message keeps its level and its place", () =>
  withClient(async (client) => {
    await send(client, "priority-kept", [withHeader("high 1", 7), withHeader("high 2", 7), withHeader("low", 1)]);
    const receiver = client.createReceiver("priority-kept");
    const [first] = await receive(receiver);
    assert.equal(first.body, "high 1");
    await receiver.abandonMessage(first);
    assert.deepEqual(await take(receiver, 3), ["high 1", "high 2", "low"]);
  }));
