// N4: every outcome a receiver can choose, with properties to modify.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, send, receive, take, isEmpty } = require("./bus");

test("an abandoned message comes back first, counted and with the new properties", () =>
  withClient(async (client) => {
    await send(client, "abandon", [{ body: "first", applicationProperties: { kept: 1, changed: 1 } }, { body: "second" }]);
    const receiver = client.createReceiver("abandon");
    const [message] = await receive(receiver);
    assert.deepEqual([message.body, message.deliveryCount], ["first", 0]);
    await receiver.abandonMessage(message, { changed: 2, added: "yes" });

    const [again] = await receive(receiver);
    assert.deepEqual([again.body, again.deliveryCount], ["first", 1]);
    assert.deepEqual({ ...again.applicationProperties }, { kept: 1, changed: 2, added: "yes" });
    await receiver.completeMessage(again);
    assert.deepEqual(await take(receiver), ["second"]);
  }));

test("a deferred message is only received by its sequence number", () =>
  withClient(async (client) => {
    await send(client, "defer", { body: "later" });
    const receiver = client.createReceiver("defer");
    const [message] = await receive(receiver);
    await receiver.deferMessage(message, { why: "not yet" });
    assert.deepEqual(await receiver.receiveMessages(1, { maxWaitTimeInMs: 1000 }), []);

    const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
    assert.deepEqual([deferred.body, deferred.applicationProperties.why], ["later", "not yet"]);
    await receiver.completeMessage(deferred);
    assert(await isEmpty(receiver));
  }));

test("a dead-lettered message keeps its reason, its source and the new properties", () =>
  withClient(async (client) => {
    await send(client, "dead-letter", { body: "broken" });
    const receiver = client.createReceiver("dead-letter");
    const [message] = await receive(receiver);
    await receiver.deadLetterMessage(message, {
      deadLetterReason: "bad form",
      deadLetterErrorDescription: "no total",
      customKey: "custom value",
    });

    const deadLetters = client.createReceiver("dead-letter", { subQueueType: "deadLetter" });
    const [dead] = await receive(deadLetters);
    assert.deepEqual(
      [dead.deadLetterReason, dead.deadLetterErrorDescription, dead.deadLetterSource],
      ["bad form", "no total", "dead-letter"],
    );
    assert.equal(dead.applicationProperties.customKey, "custom value");
    await deadLetters.completeMessage(dead);
  }));

test("a message can be dead-lettered without a reason", () =>
  withClient(async (client) => {
    await send(client, "dead-letter-bare", { body: "broken" });
    const receiver = client.createReceiver("dead-letter-bare");
    const [message] = await receive(receiver);
    await receiver.deadLetterMessage(message);
    const deadLetters = client.createReceiver("dead-letter-bare", { subQueueType: "deadLetter" });
    const [dead] = await receive(deadLetters);
    await deadLetters.completeMessage(dead);
    assert.equal(dead.body, "broken");
  }));

test("a message received before its link closed is settled over management", () =>
  withClient(async (client) => {
    await send(client, "settle-elsewhere", { body: "orphan" });
    const first = client.createReceiver("settle-elsewhere");
    const [message] = await receive(first);
    await first.close();
    const second = client.createReceiver("settle-elsewhere");
    assert.deepEqual(await second.receiveMessages(1, { maxWaitTimeInMs: 1000 }), []);
    await second.completeMessage(message);
    assert(await isEmpty(second));
  }, impatient));
