// Reads no page: says what it was started with.
process.on('message', () => {
  process.send({ value: { cwd: process.cwd(), env: { ...process.env } } });
});
