import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { plainTextOf } from '../../bench/against/labelled-pages.js';
import { ownPages } from '../../bench/support/pages/own-pages.js';
import { projectRoot } from '../../dev/root.js';

const MARK = /<!--(\[|\])-->/g;
const WORD = /[\p{L}\p{N}]+/gu;

test.each(['seen', 'unseen', 'unseen-3'] as const)(
  'each page of the set %s says where its content begins and ends, and its label is made of words of the page',
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
      // Some texts are on the page in JSON alone.
      const source = html.replaceAll('\\n', ' ');
      const written = new Set(`${plainTextOf(html)} ${source}`.match(WORD));
      const missing = (text.match(WORD) ?? []).filter((word) => !written.has(word));
      expect(missing, name).toEqual([]);
    }
  },
);

test('there are 40 at least, of every kind and language that others lack, and a third of them are not seen', async () => {
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

test('no page is in two of the sets', async () => {
  const folder = path.join(projectRoot, 'bench', 'support', 'pages');
  const names = await Promise.all(
    ['seen', 'unseen', 'unseen-3'].map((set) => readdir(path.join(folder, set))),
  );
  expect(new Set(names.flat()).size).toBe(names.flat().length);
});
