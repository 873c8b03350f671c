import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bound, openLog } from '../../dev/processes/log-file.js';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-log-'));
  file = path.join(folder, 'service.log');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('a log that is too long is rotated while its program keeps writing', async () => {
  const log = openLog(file);
  const script = "process.stdin.on('data', (chunk) => process.stdout.write(chunk))";
  const writer = spawn(process.execPath, ['-e', script], { stdio: ['pipe', log, 'ignore'] });
  closeSync(log);
  const written = async (bytes: number) => {
    await expect.poll(async () => (await stat(file)).size).toBe(bytes);
  };
  writer.stdin?.write('x'.repeat(100));
  await written(100);
  bound(file, 50);
  writer.stdin?.end('after');
  await once(writer, 'close');
  expect(await readFile(file, 'utf8')).toBe('after');
  expect(await readFile(`${file}.1`, 'utf8')).toBe('x'.repeat(100));
});

test('a log that is short or missing is not changed', async () => {
  bound(file);
  await writeFile(file, 'short');
  bound(file);
  expect(await readFile(file, 'utf8')).toBe('short');
});
