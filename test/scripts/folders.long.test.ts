import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

test('no folders of src import each other in a circle', async () => {
  const args = ['scripts/measure-shape.mjs'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: projectRoot });
  expect(stdout).toContain('0 circles between folders of src, of 0:');
});
