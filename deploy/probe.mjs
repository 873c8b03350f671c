// Ends with 0 if the process beside it is ready: node deploy/probe.mjs <metrics port>
const url = `http://127.0.0.1:${process.argv[2]}/readyz`;
const isReady = await fetch(url, { signal: AbortSignal.timeout(3_000) }).then(
  ({ ok }) => ok,
  () => false,
);
process.exit(isReady ? 0 : 1);
