// Reads no page: says what it was started with.
process.on('message', () => {
  const { cwd, env, execArgv, pid } = process;
  process.send({ value: { cwd: cwd(), env: { ...env }, execArgv, pid } });
});
