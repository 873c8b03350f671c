import { test } from 'vitest';
import { holdBytes } from './page-bytes-rounds.js';

test('decodes 10,000 random pages by their declarations, compressed and in pieces', async () => {
  await holdBytes(1_000, 10_000);
});
