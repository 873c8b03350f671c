import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { builtProgram } from '../../../dev/root.js';

/** Returns a program that serves until shutdown and then runs the given code. */
const programOf = (last: string) => `
  import { onShutdown, reportNotice, reportReady, runProcess }
    from '${pathToFileURL(builtProgram('src', 'platform', 'process', 'process-lifecycle.js')).href}';
  await runProcess(async () => {
    const ended = onShutdown();
    reportReady();
    await ended;
    ${last}
  });`;

test.each([
  ['ends in order', '', 0],
  ['ends in order when it reports a notice', `reportNotice('It is over.');`, 0],
  ['reports only its own failure', `throw new Error('It went wrong');`, 1],
])('a process whose launcher has ended %s', async (_, last, code) => {
  const program = ['--input-type=module', '--eval', programOf(last)];
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  await once(child, 'message');
  child.disconnect();
  const ended = await once(child, 'exit');
  expect(ended[0], said).toBe(code);
  expect(said).not.toContain('ERR_IPC');
});

test('a failure is one line of the log at level 60 and one sentence on standard error', async () => {
  const url = pathToFileURL(
    builtProgram('src', 'platform', 'process', 'process-lifecycle.js'),
  ).href;
  const code = `import { runProcess } from '${url}';
    await runProcess(() => Promise.reject(new Error('The disk is full: free 1 GB')));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code]);
  const [output, errors, [exit]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  expect(exit).toBe(1);
  expect(errors).toBe('The disk is full: free 1 GB\n');
  expect(
    output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([
    expect.objectContaining({
      level: 60,
      msg: 'The disk is full: free 1 GB',
      err: expect.objectContaining({ type: 'Error', stack: expect.stringContaining('at ') }),
    }),
  ]);
});
