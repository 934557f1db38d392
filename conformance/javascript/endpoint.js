// Where the broker under test listens, as the runner told us, and the connection strings that reach it.
// The strings are those of the Service Bus emulator, so what passes here works for its users unmodified.
"use strict";

const KEY_NAME = "RootManageSharedAccessKey";
const KEY = "SAS_KEY_VALUE";
const host = "localhost";

function port(name) {
  const value = process.env[`VORRANG_${name}_PORT`];
  if (!value) throw new Error(`VORRANG_${name}_PORT is not set; run these tests with \`cargo xtask conformance\``);
  return Number(value);
}

/** The emulator's connection string: plain TCP, development key. */
function connectionString({ amqp = port("AMQP"), key = KEY } = {}) {
  return `Endpoint=sb://${host}:${amqp};SharedAccessKeyName=${KEY_NAME};SharedAccessKey=${key};UseDevelopmentEmulator=true;`;
}

/** The connection string of the cloud, with a port of ours: TLS, no emulator flag. */
function secureConnectionString(securePort) {
  return `Endpoint=sb://${host}:${securePort};SharedAccessKeyName=${KEY_NAME};SharedAccessKey=${KEY}`;
}

module.exports = { connectionString, secureConnectionString, port, host };
