import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearScratch, Folder } from '../../../src/workspace/files/folder.js';
import { SCRATCH } from '../../../src/workspace/files/segments.js';

let workspace: string;
beforeEach(async () => {
  workspace = await mkdtemp(path.join(tmpdir(), 'aps-scratch-'));
  await mkdir(path.join(workspace, SCRATCH));
});
afterEach(() => rm(workspace, { recursive: true }));

async function endedProcess(): Promise<number> {
  const child = spawn(process.execPath, ['--eval', '']);
  await once(child, 'exit');
  return child.pid ?? 0;
}

test('removes partial files of processes that have ended, and no others', async () => {
  const name = 'a'.repeat(24);
  const left = [name, `${await endedProcess()}-${name}`, `${process.pid}-${name}`];
  const others = [`${process.ppid}-${name}`, 'notes.md'];
  for (const each of [...left, ...others]) await writeFile(path.join(workspace, SCRATCH, each), '');
  const root = await Folder.root(workspace);
  await clearScratch(root);
  await root.close();
  expect((await readdir(path.join(workspace, SCRATCH))).sort()).toEqual(others.sort());
});
