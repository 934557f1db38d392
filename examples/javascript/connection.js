// Which broker the examples talk to.
export const connectionString =
  process.env.VORRANG_CONNECTION_STRING ??
  "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;" +
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

// The administration client wants HTTPS: let node trust the broker's certificate with NODE_EXTRA_CA_CERTS.
export const adminConnectionString =
  process.env.VORRANG_ADMIN ??
  "Endpoint=sb://localhost:5443;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE";
