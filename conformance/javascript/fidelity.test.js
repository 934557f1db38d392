// D8 and E2: what goes in comes out.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const { withClient, send, receive } = require("./bus");

async function roundTrip(message) {
  return withClient(async (client) => {
    await send(client, "fidelity", message);
    const receiver = client.createReceiver("fidelity");
    const [received] = await receive(receiver);
    await receiver.completeMessage(received);
    return received;
  });
}

test("application properties keep value and type", async () => {
  const applicationProperties = {
    text: "grüße", integer: 42, negative: -7, fraction: 2.5, yes: true, no: false,
    when: new Date("2030-01-02T03:04:05Z"), nothing: null,
  };
  const received = await roundTrip({ body: "x", applicationProperties });
  // The SDK hands points in time out as numbers.
  const expected = { ...applicationProperties, when: applicationProperties.when.getTime() };
  assert.deepEqual({ ...received.applicationProperties }, expected);
});

test("every standard property survives", async () => {
  const sent = {
    body: { nested: [1, "two", null] }, messageId: "id", correlationId: "correlation", subject: "subject",
    contentType: "application/json", to: "to", replyTo: "reply-to", replyToSessionId: "reply-to-session",
    sessionId: "session", partitionKey: "session", timeToLive: 3_600_000,
  };
  const received = await roundTrip(sent);
  for (const [key, value] of Object.entries(sent)) assert.deepEqual(received[key], value, key);
});

test("every kind of body survives", async () => {
  const bodies = { value: { map: 1 }, sequence: [[1, 2], ["three"]], data: Buffer.from([0, 255]) };
  for (const [bodyType, body] of Object.entries(bodies)) {
    const received = await roundTrip({ bodyType, body });
    assert.equal(received._rawAmqpMessage.bodyType, bodyType);
    const { content = received.body } = received._rawAmqpMessage.body; // a sequence comes wrapped
    assert.deepEqual(content, body, bodyType);
  }
});
