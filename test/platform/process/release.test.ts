import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../../dev/root.js';
import { readRelease } from '../../../src/platform/process/release.js';

test('reads the release from the nearest package.json', () => {
  const file = readFileSync(path.join(projectRoot, 'package.json'), 'utf8');
  expect(readRelease()).toBe(JSON.parse(file).version);
});

test('has no release outside of a package', () => {
  expect(readRelease(tmpdir())).toBe('unknown');
});
