import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { attackFiles } from '../../scripts/attack-files.js';

test('the table of threats names every test file that acts as an attacker, and no other', async () => {
  const page = readFileSync(path.join(projectRoot, 'docs/security.md'), 'utf8');
  const [, table = ''] = page.split('## Threats\n');
  const named = [...table.matchAll(/`(test\/[\w./-]+\.test\.ts)`/g)].map(([, file]) => file);
  expect([...new Set(named)].sort()).toEqual(await attackFiles());
});
