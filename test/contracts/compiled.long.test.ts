import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { COMPILED, compileEscrow } from '../../scripts/compile-contracts.js';

test('src/money/chain/payment-escrow.ts is what npm run build:contracts makes of the source', async () => {
  expect(await readFile(COMPILED, 'utf8')).toBe(await compileEscrow());
});
