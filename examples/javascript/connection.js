// Which broker the examples talk to.
export const connectionString =
  process.env.VORRANG_CONNECTION_STRING ??
  "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;" +
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";
