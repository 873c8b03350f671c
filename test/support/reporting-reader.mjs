// Reads no page: reports the working directory and environment of the process.
process.on('message', () => {
  process.send({ value: { cwd: process.cwd(), env: { ...process.env } } });
});
