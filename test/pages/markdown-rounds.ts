import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { blocksOf } from '../../src/pages/blocks.js';
import { markdown } from '../../src/pages/markdown.js';
import { parseHtml } from '../../src/pages/parse-html.js';
import { Random } from '../support/random.js';
import { ofCommonMark, ofGfm } from './parsed-markdown.js';
import { BASE, randomPage } from './random-page.js';

/** Compares the Markdown of random pages with two parsers, one page per seed. */
export function holdMarkdown(firstSeed: number, rounds: number): void {
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    const hasTables = seed % 2 === 0;
    const page = randomPage(new Random(seed), hasTables);
    const written = markdown(blocksOf(parseHtml(page.html)), BASE);
    const readings = hasTables ? [ofGfm(written)] : [ofGfm(written), ofCommonMark(written)];
    const context = `seed ${seed}: ${page.html}\n\n${written}`;
    for (const { parts } of readings) hold(parts, page.parts, context);
    const [, reading] = readings;
    if (reading) hold(reading.links.map(decoded), page.links.map(decoded), context);
  }
}

const decoded = (url: string): string => decodeURIComponent(url);

/** Compares values; the comparison of a test is slow, and so only made to show a difference. */
function hold(value: unknown, wanted: unknown, context: string): void {
  if (!isDeepStrictEqual(value, wanted)) expect(value, context).toEqual(wanted);
}
