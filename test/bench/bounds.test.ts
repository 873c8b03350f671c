import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { endChild } from '../../bench/support/child.js';
import { within } from '../../bench/support/within.js';
import { runProgram } from '../support/run-program.js';

const WAITING = `console.log('it waits'); setInterval(() => {}, 1000);`;

test('names the result that does not arrive in time', async () => {
  await expect(within('an answer', 50, new Promise(() => undefined))).rejects.toThrow(
    'Waited 0.05 s for an answer',
  );
  expect(await within('an answer', 50, Promise.resolve('yes'))).toBe('yes');
});

test('ends a program that takes too long, and shows its output', async () => {
  await expect(runProgram(['--eval', WAITING], {}, 1_000)).rejects.toThrow(
    /did not end within 1000 ms:\nit waits/,
  );
});

test('kills a child that ignores the request to end', async () => {
  const deaf = `process.on('SIGTERM', () => {}); ${WAITING}`;
  const child = spawn(process.execPath, ['--eval', deaf]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await endChild('a child', child, 100);
  expect(child.signalCode).toBe('SIGKILL');
  await endChild('a child', child, 100);
});
