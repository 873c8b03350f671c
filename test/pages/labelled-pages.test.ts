import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { plainTextOf } from '../../bench/against/labelled-pages.js';
import { ownPages } from '../../bench/support/pages/own-pages.js';
import { projectRoot } from '../../dev/root.js';

const MARK = /<!--(\[|\])-->/g;
const WORD = /[\p{L}\p{N}]+/gu;

test.each(['seen', 'unseen', 'unseen-3'] as const)(
  'finds balanced content marks and the words of its label on each page of the set %s',
  async (set) => {
    const pages = await ownPages(set);
    expect(pages.length).toBeGreaterThan(10);
    for (const { bytes, name, text = '' } of pages) {
      const file = path.join(projectRoot, 'bench', 'support', 'pages', set, name);
      const marks = [...(await readFile(file, 'utf8')).matchAll(MARK)].map(([, mark]) => mark);
      expect(marks, name).toEqual(marks.map((_, index) => (index % 2 === 0 ? '[' : ']')));
      expect(marks.length % 2, name).toBe(0);
      const html = Buffer.from(bytes).toString();
      expect(html.match(MARK), name).toBeNull();
      // Some texts occur on the page only in JSON.
      const source = html.replaceAll('\\n', ' ');
      const written = new Set(`${plainTextOf(html)} ${source}`.match(WORD));
      const missing = (text.match(WORD) ?? []).filter((word) => !written.has(word));
      expect(missing, name).toEqual([]);
    }
  },
);

test('covers every kind and difficult language with at least 40 seen pages, and a third unseen', async () => {
  const seen = (await ownPages('seen')).length;
  const unseen = await Promise.all([ownPages('unseen'), ownPages('unseen-3')]);
  const all = [...(await ownPages('seen')), ...unseen.flat()];
  expect(seen).toBeGreaterThanOrEqual(40);
  expect(unseen.flat().length * 3).toBeGreaterThanOrEqual(all.length);
  const of = (at: number) => new Set(all.map(({ name }) => name.split('.')[at]));
  const kinds = ['blog', 'docs', 'forum', 'front', 'list', 'product', 'recipe'];
  expect([...of(0)]).toEqual(expect.arrayContaining(kinds));
  expect([...of(1)]).toEqual(expect.arrayContaining(['ar', 'ja', 'ko', 'th', 'zh']));
});

test('no labelled page belongs to two sets', async () => {
  const folder = path.join(projectRoot, 'bench', 'support', 'pages');
  const names = await Promise.all(
    ['seen', 'unseen', 'unseen-3'].map((set) => readdir(path.join(folder, set))),
  );
  expect(new Set(names.flat()).size).toBe(names.flat().length);
});
