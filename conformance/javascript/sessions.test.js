// N9 and N10: sessions, one holder at a time.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, impatient, send, receive, take } = require("./bus");

const manual = { maxAutoLockRenewalDurationInMs: 0 };

test("a session accepted by id gives only its own messages in order", () =>
  withClient(async (client) => {
    const message = (sessionId, number) => ({ body: `${sessionId}${number}`, sessionId });
    await send(client, "session-by-id", [message("a", 1), message("b", 1), message("a", 2), message("b", 2)]);
    for (const session of ["b", "a"]) {
      const receiver = await client.acceptSession("session-by-id", session);
      assert.equal(receiver.sessionId, session);
      assert.deepEqual(await take(receiver, 2), [`${session}1`, `${session}2`]);
      await receiver.close();
    }
  }));

test("the next session is one that waits", () =>
  withClient(async (client) => {
    await send(client, "session-next", { body: "only", sessionId: "waiting" });
    const receiver = await client.acceptNextSession("session-next");
    assert.equal(receiver.sessionId, "waiting");
    assert.deepEqual(await take(receiver), ["only"]);
    await receiver.close();
  }));

test("waiting for a session ends with a timeout", () =>
  withClient(
    async (client) => {
      const started = Date.now();
      await assert.rejects(client.acceptNextSession("session-none"), { code: "ServiceTimeout" });
      assert(Date.now() - started < 10_000);
    },
    { retryOptions: { maxRetries: 0, timeoutInMs: 4000 } },
  ));

test("a held session cannot be taken and is free after close", () =>
  withClient(async (client) => {
    const holder = await client.acceptSession("session-state", "held");
    await assert.rejects(client.acceptSession("session-state", "held"), { code: "SessionCannotBeLocked" });
    await holder.close();
    const next = await client.acceptSession("session-state", "held");
    assert.equal(next.sessionId, "held");
    await next.close();
  }, impatient));

test("session state outlives its holder", () =>
  withClient(async (client) => {
    const first = await client.acceptSession("session-state", "remembering");
    await first.setSessionState({ step: 3 });
    await first.close();
    const second = await client.acceptSession("session-state", "remembering");
    assert.deepEqual(await second.getSessionState(), { step: 3 });
    await second.setSessionState(null);
    await second.close();
  }));

test("a renewed session lock outlives its first expiry", () =>
  withClient(async (client) => {
    await send(client, "session-renewal", { body: "work", sessionId: "s" });
    const receiver = await client.acceptSession("session-renewal", "s", manual);
    const firstExpiry = receiver.sessionLockedUntilUtc;
    const [message] = await receive(receiver);
    assert.deepEqual(await receiver.receiveMessages(1, { maxWaitTimeInMs: 2000 }), []);
    assert((await receiver.renewSessionLock()) > firstExpiry);
    assert.deepEqual(await receiver.receiveMessages(1, { maxWaitTimeInMs: firstExpiry - Date.now() + 1000 }), []);
    await receiver.completeMessage(message);
    await receiver.close();
  }));

test("a session lock run out frees the session and counts the attempt", () =>
  withClient(async (client) => {
    await send(client, "session-lock", { body: "work", sessionId: "s" });
    const slow = await client.acceptSession("session-lock", "s", manual);
    const [message] = await receive(slow);
    const next = await client.acceptNextSession("session-lock", manual);
    assert.equal(next.sessionId, "s");
    await assert.rejects(slow.completeMessage(message), { code: "SessionLockLost" });
    const [redelivered] = await receive(next);
    assert.equal(redelivered.deliveryCount, 1);
    await next.completeMessage(redelivered);
    await next.close();
  }, impatient));

test("a session queue refuses messages without a session", () =>
  withClient(async (client) => {
    await assert.rejects(send(client, "session-required", { body: "homeless" }));
  }, impatient));
