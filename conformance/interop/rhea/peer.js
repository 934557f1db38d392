// Our protocol engine as a process: serving until we let go of it, or calling a server of ours.
"use strict";

const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { createInterface } = require("node:readline");
const { text } = require("node:stream/consumers");

const PEER = process.env.VORRANG_INTEROP_PEER;
const CLIENT = process.env.VORRANG_INTEROP_CLIENT;
const LOGIN = { username: "guest", password: "secret" };

/** Runs `story` with the port of a serving engine, which ends when its input does. */
async function withServingPeer(story) {
  const peer = spawn(PEER, ["serve"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(peer, "exit");
  try {
    const [line] = await once(createInterface({ input: peer.stdout }), "line");
    return await story(Number(line.split(" ")[1]));
  } finally {
    peer.stdin.end();
    await ended;
  }
}

/** Runs a program of ours against a server of theirs; the steps it got through, and what it complained about. */
async function converse(program, words) {
  const peer = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"] });
  const [steps, complaint] = await Promise.all([text(peer.stdout), text(peer.stderr)]);
  return { steps: steps.split("\n").filter(Boolean), complaint };
}

/** Lets the engine talk to a server. */
const call = (port, ...login) => converse(PEER, ["call", String(port), ...login]);

/** The same for the client library, which connects again, waits and settles by itself. */
const callByClient = (port, ...login) => converse(CLIENT, [String(port), ...login]);

module.exports = { withServingPeer, call, callByClient, LOGIN };
