import { test } from 'vitest';
import { holdMarkdown } from './markdown-rounds.js';

test('two parsers read 10,000 random pages back from their Markdown', () => {
  holdMarkdown(1_000, 10_000);
});
