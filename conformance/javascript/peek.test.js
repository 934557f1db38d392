// N7: looking without taking.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive, take, numbered } = require("./bus");

test("peeking starts anywhere and changes nothing", () =>
  withClient(async (client) => {
    await send(client, "peek", numbered(20).map((body) => ({ body })));
    const receiver = client.createReceiver("peek");
    const first = await receiver.peekMessages(10);
    assert.deepEqual(first.map((message) => message.body), numbered(10));
    const rest = await receiver.peekMessages(100, { fromSequenceNumber: first[9].sequenceNumber.add(1) });
    assert.deepEqual(rest.map((message) => message.body), numbered(20).slice(10));
    assert.deepEqual(await take(receiver, 20), numbered(20));
  }));

test("peeking shows active, deferred and scheduled messages", () =>
  withClient(async (client) => {
    await send(client, "peek-states", [{ body: "deferred" }, { body: "active" }]);
    const sender = client.createSender("peek-states");
    const [scheduled] = await sender.scheduleMessages({ body: "scheduled" }, new Date(Date.now() + 86_400_000));
    const receiver = client.createReceiver("peek-states");
    const [message] = await receive(receiver);
    await receiver.deferMessage(message);

    const states = Object.fromEntries((await receiver.peekMessages(10)).map(({ body, state }) => [body, state]));
    assert.deepEqual(states, { deferred: "deferred", active: "active", scheduled: "scheduled" });
    await sender.cancelScheduledMessages(scheduled);
  }));
