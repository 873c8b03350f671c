import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../../../dev/root.js';
import { plainTextOf } from '../../against/labelled-pages.js';
import type { LabelledPage } from './labelled-page.js';

const FOLDER = path.join(projectRoot, 'bench', 'support', 'pages');

/** What is said of a page's kind, for each set of pages. */
const SETS = { seen: '', unseen: ' (unseen)', 'unseen-3': ' (unseen 3)' };

/** Around what belongs to a page's content. */
const BEGIN = '<!--[-->';
const END = '<!--]-->';

/** Around what belongs to it and is on the page only for programs that look into its data. */
const UNSHOWN = /<!--\{-->([^]*)<!--\}-->/;

/**
 * Pages of this product's own making, for the kinds and languages that the others' lack. Their files are named
 * `<kind>.<language>.<what>.html`, and say in comments, which no reader gets, where their content begins and
 * ends.
 *
 * @param set `unseen` and `unseen-3` are those that nobody looks at who changes how pages are read; the later one was
 *   made after the figures of others had been looked at several times.
 */
export async function ownPages(set: keyof typeof SETS): Promise<LabelledPage[]> {
  const folder = path.join(FOLDER, set);
  const pages: LabelledPage[] = [];
  for (const file of (await readdir(folder)).toSorted()) {
    const [kind = '', language = ''] = file.split('.');
    const marked = await readFile(path.join(folder, file), 'utf8');
    const shown = marked.split(BEGIN).slice(1);
    const parts = [...shown.map((each) => each.split(END)[0]), UNSHOWN.exec(marked)?.[1]];
    const text = parts.map((each) => plainTextOf(each ?? '')).join(' ');
    if (text.trim() === '') throw new Error(`${file} does not say what belongs to its content.`);
    const html = marked.replace(UNSHOWN, '').replaceAll(BEGIN, '').replaceAll(END, '');
    const [, heading] = /<h1[^>]*>([^<]+)<\/h1>/.exec(parts.join('')) ?? [];
    pages.push({
      kind: `${kind}${SETS[set]}`,
      name: file,
      url: `http://${language}.example.com/${kind}/`,
      bytes: Buffer.from(html),
      text,
      ...(heading !== undefined && { heading }),
      facts: { language },
    });
  }
  return pages;
}
