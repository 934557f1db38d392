// N21: the same story over TLS and over WebSocket. The runner makes node trust the development certificate.
"use strict";

const assert = require("node:assert/strict");
const test = require("node:test");
const WebSocket = require("ws");
const { port, secureConnectionString } = require("./endpoint");
const { withClient, impatient, send, take, isEmpty } = require("./bus");

const TRANSPORTS = [
  ["transport-tls", () => ({ string: secureConnectionString(port("AMQPS")) })],
  ["transport-websocket", () => ({
    string: secureConnectionString(port("HTTPS")),
    webSocketOptions: { webSocket: WebSocket },
  })],
];

for (const [queue, options] of TRANSPORTS) {
  test(`messages pass small and large over ${queue}`, () =>
    withClient(async (client) => {
      const bodies = ["small", "x".repeat(200_000)];
      for (const body of bodies) await send(client, queue, { body });
      const receiver = client.createReceiver(queue);
      assert.deepEqual(await take(receiver, 2), bodies);
      assert(await isEmpty(receiver));
    }, { ...options(), ...impatient }));
}
