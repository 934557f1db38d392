// N15 and N16: what is missing and who is not allowed, said quickly and by the right name.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { connectionString } = require("./endpoint");
const { withClient, impatient, send } = require("./bus");

test("sending to a missing queue fails at once, without retries", () =>
  withClient(async (client) => {
    const started = Date.now();
    await assert.rejects(send(client, "no-such-queue", { body: "lost" }), { code: "MessagingEntityNotFound" });
    assert(Date.now() - started < 5000);
  }));

test("receiving from a missing subscription fails at once", () =>
  withClient(async (client) => {
    const receiver = client.createReceiver("fan-out", "no-such-subscription");
    await assert.rejects(receiver.receiveMessages(1), { code: "MessagingEntityNotFound" });
  }));

test("a wrong key is an authentication error", () =>
  withClient(
    async (client) => assert.rejects(send(client, "send-receive", { body: "sneaked in" }), { code: "UnauthorizedAccess" }),
    { string: connectionString({ key: "not-the-key" }), ...impatient },
  ));

test("receiving from a topic itself or from a forwarding queue is refused", () =>
  withClient(async (client) => {
    await assert.rejects(client.createReceiver("fan-out").receiveMessages(1));
    await assert.rejects(client.createReceiver("forward-start").receiveMessages(1));
  }, impatient));
