import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';
import { EMPTY_START } from '../../scripts/lint-rules.mjs';

const PAGES = [
  'README.md',
  ...readdirSync(path.join(projectRoot, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** Returns the sentences of a page: of paragraphs, headings, list items and cells, without code blocks. */
function sentencesOf(page: string): string[] {
  return page
    .replace(/^ *```[\s\S]*?^ *```/gm, '')
    .replace(/^ *(#+|[-*]|\d+\.) /gm, '\n\n')
    .replace(/ *\| */g, '\n\n')
    .split(/\n\s*\n/)
    .flatMap((paragraph) => paragraph.replace(/\s+/g, ' ').split(/(?<=[.!?:]) (?=[A-Z`"'*[])/))
    .map((sentence) => sentence.trim().replace(/^[*"'[(]+/, ''));
}

test.each(PAGES)('begins no sentence with an empty word: %s', (page) => {
  const sentences = sentencesOf(readFileSync(path.join(projectRoot, page), 'utf8'));
  expect(sentences.length).toBeGreaterThan(20);
  expect(sentences.filter((each) => EMPTY_START.test(each))).toEqual([]);
});
