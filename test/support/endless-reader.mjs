// Reads no page to its end, as the worst page would have it; should nobody end it, it says so after a minute.
process.on('message', () => {
  const end = Date.now() + 60_000;
  while (Date.now() < end);
  process.send({ failure: 'Nobody has ended this' });
});
