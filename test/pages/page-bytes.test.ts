import { test } from 'vitest';
import { holdBytes } from './page-bytes-rounds.js';

test('decodes random pages by their declarations, compressed and in pieces', async () => {
  await holdBytes(1, 300);
});
