// Reads no page to its end, as the worst page would have it; a minute, should nobody end it.
process.on('message', () => {
  const end = Date.now() + 60_000;
  while (Date.now() < end);
  process.exit();
});
