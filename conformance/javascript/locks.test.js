// N5 and N6: a lock renewed holds, a lock run out does not.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, send, receive, isEmpty } = require("./bus");

// The SDK renews locks by itself unless told not to; here the tests decide.
const manual = { maxAutoLockRenewalDurationInMs: 0 };

test("a renewed lock outlives its first expiry", () =>
  withClient(async (client) => {
    await send(client, "lock-renewal", { body: "slow work" });
    const receiver = client.createReceiver("lock-renewal", manual);
    const rival = client.createReceiver("lock-renewal", manual);
    const [message] = await receive(receiver);
    const firstExpiry = message.lockedUntilUtc;
    const untilExpiry = () => firstExpiry - Date.now();

    assert.deepEqual(await rival.receiveMessages(1, { maxWaitTimeInMs: untilExpiry() / 2 }), []);
    assert((await receiver.renewMessageLock(message)) > firstExpiry);
    assert.deepEqual(await rival.receiveMessages(1, { maxWaitTimeInMs: untilExpiry() + 500 }), []);
    await receiver.completeMessage(message);
    assert(await isEmpty(receiver));
  }));

test("completing after the lock ran out is refused", () =>
  withClient(async (client) => {
    await send(client, "lock-lost", { body: "too slow" });
    const slow = client.createReceiver("lock-lost", manual);
    const next = client.createReceiver("lock-lost", manual);
    const [message] = await receive(slow);
    const [redelivered] = await receive(next);
    assert.equal(redelivered.deliveryCount, 1);
    await assert.rejects(slow.completeMessage(message), { code: "MessageLockLost" });
    await next.completeMessage(redelivered);
  }, impatient));
