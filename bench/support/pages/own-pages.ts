import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { projectRoot } from '../../../dev/root.js';
import { plainTextOf } from '../../against/labelled-pages.js';
import type { LabelledPage } from './labelled-page.js';

const FOLDER = path.join(projectRoot, 'bench', 'support', 'pages');

/** Suffixes of the page kinds for each set of pages. */
const SETS = { seen: '', unseen: ' (unseen)', 'unseen-3': ' (unseen 3)' };

/** Markers around the content of a page. */
const BEGIN = '<!--[-->';
const END = '<!--]-->';

/** Matches content that is in the page's data only and not displayed. */
const UNSHOWN = /<!--\{-->([^]*)<!--\}-->/;

/**
 * Returns pages made for this product, in the kinds and languages that third-party sets lack. Files are
 * named `<kind>.<language>.<what>.html`; comments, which readers do not get, mark the content.
 *
 * @param set `unseen` and `unseen-3` are the pages that developers of the reader must not inspect;
 *   `unseen-3` was made after the results of earlier sets had been read several times.
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
    if (text.trim() === '') throw new Error(`${file} does not mark its content.`);
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
