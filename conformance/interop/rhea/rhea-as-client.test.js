// rhea as client, our engine as server.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const test = require("node:test");
const rhea = require("rhea");
const { withServingPeer, LOGIN } = require("./peer");

const FRAME_BYTES_MAX = 4096;

/** Runs `story` with an open connection and closes it afterwards. */
function withConnection(story, login = LOGIN) {
  return withServingPeer(async (port) => {
    const container = rhea.create_container();
    const connection = container.connect({ port, reconnect: false, max_frame_size: FRAME_BYTES_MAX, ...login });
    await once(connection, "connection_open");
    try {
      await story(connection);
    } finally {
      if (connection.is_open()) {
        connection.close();
        await once(connection, "connection_close");
      }
    }
  });
}

async function openSender(connection, address) {
  const sender = connection.open_sender({ target: address });
  await once(sender, "sendable");
  return sender;
}

const nameOf = (outcome) => outcome.constructor.composite_type;

/** Sends one message and returns the name of its outcome. */
async function send(sender, message) {
  const settled = once(sender, "settled");
  sender.send(message);
  const [{ delivery }] = await settled;
  return nameOf(delivery.remote_state);
}

/** Receives `count` messages with exactly that much credit and gives each to `decide`. */
function receive(receiver, count, decide = (delivery) => delivery.accept()) {
  return new Promise((resolve) => {
    const messages = [];
    receiver.on("message", function take({ message, delivery }) {
      messages.push(message);
      decide(delivery);
      if (messages.length === count) {
        receiver.removeListener("message", take);
        resolve(messages);
      }
    });
    receiver.add_credit(count);
  });
}

const openReceiver = (connection, options) =>
  connection.open_receiver({ credit_window: 0, autoaccept: false, ...options });

test("anonymous and plain both open", async () => {
  for (const login of [{ username: "anyone" }, LOGIN]) {
    await withConnection(async (connection) => assert.equal(connection.remote.open.container_id, "interop-peer"), login);
  }
});

test("a wrong password does not", () =>
  withServingPeer(async (port) => {
    const connection = rhea.create_container().connect({ port, reconnect: false, username: "guest", password: "guess" });
    const [context] = await once(connection, "connection_error");
    assert.match(String(context.error ?? context.connection.get_error()), /auth|denied|failed/i);
  }));

test("messages of every size come back", () =>
  withConnection(async (connection) => {
    const sender = await openSender(connection, "echo");
    const receiver = openReceiver(connection, { source: "echo" });
    for (const length of [0, 1, 3000, 4096, 100_000, 900_000]) {
      const body = Buffer.alloc(length, "0123456789abc");
      assert.equal(await send(sender, { body: rhea.message.data_section(body) }), "accepted");
      const [message] = await receive(receiver, 1);
      assert(body.equals(message.body.content), `${length} bytes`);
    }
  }));

test("many messages come back in order", () =>
  withConnection(async (connection) => {
    const sender = await openSender(connection, "echo");
    const receiver = openReceiver(connection, { source: "echo" });
    for (let number = 0; number < 90; number += 1) sender.send({ body: number });
    const messages = await receive(receiver, 90);
    assert.deepEqual(messages.map(({ body }) => body), Array.from({ length: 90 }, (_, number) => number));
  }));

test("a sender hears every outcome", () =>
  withConnection(async (connection) => {
    for (const [address, outcome] of [["rejecting", "rejected"], ["releasing", "released"], ["modifying", "modified"]]) {
      assert.equal(await send(await openSender(connection, address), { body: "x" }), outcome);
    }
  }));

test("what a receiver gives back comes again, what it rejects does not", () =>
  withConnection(async (connection) => {
    const sender = await openSender(connection, "echo");
    const receiver = openReceiver(connection, { source: "echo" });
    await send(sender, { body: "x" });
    for (const giveBack of [(delivery) => delivery.release(), (delivery) => delivery.modified({ delivery_failed: true })]) {
      const [message] = await receive(receiver, 1, giveBack);
      assert.equal(message.body, "x");
    }
    await receive(receiver, 1, (delivery) => delivery.reject({ condition: "amqp:precondition-failed" }));
    receiver.add_credit(1);
    receiver.drain_credit();
    await once(receiver, "receiver_drained");
  }));

test("a receiver that settles second is confirmed with its own outcome", () =>
  withConnection(async (connection) => {
    const sender = await openSender(connection, "echo");
    const receiver = openReceiver(connection, { source: "echo", snd_settle_mode: 0, rcv_settle_mode: 1 });
    await send(sender, { body: "x" });
    const settled = once(receiver, "settled");
    await receive(receiver, 1, (delivery) => delivery.update(false, rhea.message.accepted().described()));
    const [{ delivery }] = await settled;
    assert(delivery.remote_settled);
    assert.equal(nameOf(delivery.remote_state), "accepted");
  }));

test("settled messages pass without a word", () =>
  withConnection(async (connection) => {
    const sender = connection.open_sender({ target: "echo", snd_settle_mode: 1 });
    await once(sender, "sendable");
    assert.equal(sender.send({ body: "x" }).settled, true);
    const receiver = openReceiver(connection, { source: "echo", snd_settle_mode: 1 });
    const [message] = await receive(receiver, 1, (delivery) => assert.equal(delivery.remote_settled, true));
    assert.equal(message.body, "x");
  }));

test("a drain brings what there is and then ends", () =>
  withConnection(async (connection) => {
    const sender = await openSender(connection, "echo");
    for (const body of [1, 2, 3]) await send(sender, { body });
    const receiver = openReceiver(connection, { source: "echo" });
    const bodies = [];
    receiver.on("message", ({ message, delivery }) => {
      bodies.push(message.body);
      delivery.accept();
    });
    await once(receiver, "receiver_open");
    receiver.add_credit(10);
    receiver.drain_credit();
    await once(receiver, "receiver_drained");
    assert.deepEqual(bodies, [1, 2, 3]);
    assert.equal(receiver.credit, 0);
  }));

test("filters are echoed as they came", () =>
  withConnection(async (connection) => {
    const filter = rhea.filter.selector("color = 'red'");
    const receiver = openReceiver(connection, { source: { address: "echo", filter } });
    await once(receiver, "receiver_open");
    const echoed = receiver.source.filter["jms-selector"];
    assert.equal(String(echoed.value ?? echoed), "color = 'red'");
    assert(echoed.descriptor, "the filter lost its descriptor");
  }));

test("refused and detached links and a closed connection name the reason", () =>
  withConnection(async (connection) => {
    const refused = connection.open_receiver({ source: "refused" });
    await once(refused, "receiver_error");
    assert.equal(refused.error.condition, "amqp:not-found");

    const detached = await openSender(connection, "detaching");
    detached.send({ body: "x" });
    await once(detached, "sender_error");
    assert.equal(detached.error.condition, "amqp:resource-limit-exceeded");

    const closing = await openSender(connection, "closing");
    closing.send({ body: "x" });
    await once(connection, "connection_error");
    assert.equal(connection.error.condition, "amqp:connection:forced");
  }));
