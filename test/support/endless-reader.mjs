// Blocks on every page, as the worst page would; if not killed, it reports a failure after a minute.
process.on('message', () => {
  const end = Date.now() + 60_000;
  while (Date.now() < end);
  process.send({ failure: 'The reader was not stopped' });
});
