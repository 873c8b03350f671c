import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runProgram } from '../support/run-program.js';

let modules: string;
beforeEach(async () => {
  modules = await mkdtemp(path.join(tmpdir(), 'aps-modules-'));
});
afterEach(() => rm(modules, { recursive: true, force: true }));

const prune = () => runProgram(['scripts/prune-modules.mjs', modules]);
const make = (...parts: readonly string[]) =>
  mkdir(path.join(modules, ...parts), { recursive: true });

const ARCH = process.arch === 'x64' ? 'x86_64' : 'aarch64';
const RUST = process.platform === 'darwin' ? `${ARCH}-apple-darwin` : `${ARCH}-unknown-linux-gnu`;
const RELEASES = ['@temporalio', 'core-bridge', 'releases'];

test('keeps only the native modules of this platform', async () => {
  const own = `${process.platform}-${process.arch}`;
  for (const build of [own, 'win32-x64', 'sunos-x64']) await make('bcrypt', 'prebuilds', build);
  for (const build of [RUST, 'x86_64-pc-windows-msvc', 'riscv64-unknown-linux-gnu']) {
    await make(...RELEASES, build);
  }
  await make('typescript');
  await make('pino');
  await prune();
  expect(await readdir(path.join(modules, 'bcrypt', 'prebuilds'))).toEqual([own]);
  expect(await readdir(path.join(modules, ...RELEASES))).toEqual([RUST]);
  expect((await readdir(modules)).sort()).toEqual(['@temporalio', 'bcrypt', 'pino']);
});

test('fails if this platform has no native module', async () => {
  await make('bcrypt', 'prebuilds', 'sunos-x64');
  await expect(prune()).rejects.toThrow('has no native module for');
});
