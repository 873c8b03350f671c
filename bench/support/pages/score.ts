import { collapsed } from '../../../src/pages/plain-text.js';
import type { LabelledPage, PageLabels, ReadPage } from './labelled-page.js';

/** Precision and recall of a text, from 0 to 1. */
export interface Score {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/** The score below which a page is unusable. */
export const BAD = 0.5;

/**
 * Scores the text of a page.
 *
 * @returns undefined if the page has no label for its text.
 */
export function scoreOf(page: LabelledPage, read: ReadPage): Score | undefined {
  const text = withHeading(page, read);
  if (page.text !== undefined) return wordScore(page.text, text);
  if (page.holds === undefined) return undefined;
  return snippetScore(page.holds, page.lacks ?? [], text);
}

/** Adds the headline to the text if the reader returned it as the title only. */
function withHeading({ heading }: LabelledPage, { text = '', title = '' }: ReadPage): string {
  if (heading === undefined || text === '') return text;
  const isIn = (whole: string) => comparable(whole).includes(comparable(heading));
  return !isIn(text) && isIn(title) ? `${heading} ${text}` : text;
}

/** Compares the words with their number of occurrences. */
function wordScore(label: string, text: string): Score {
  const wanted = counted(label);
  let found = 0;
  let read = 0;
  for (const [word, times] of counted(text)) {
    read += times;
    found += Math.min(times, wanted.get(word) ?? 0);
  }
  let all = 0;
  for (const times of wanted.values()) all += times;
  return score(found, read - found, all - found);
}

function snippetScore(holds: readonly string[], lacks: readonly string[], text: string): Score {
  const plain = comparable(text);
  const isIn = (snippet: string) => plain.includes(comparable(snippet));
  const found = holds.filter(isIn).length;
  return score(found, lacks.filter(isIn).length, holds.length - found);
}

/**
 * Computes precision, recall and F1.
 *
 * @param wrong items that were read but do not belong to the content.
 * @param missed items that belong to the content but were not read.
 */
export function score(found: number, wrong: number, missed: number): Score {
  const precision = found + wrong === 0 ? 0 : found / (found + wrong);
  const recall = found + missed === 0 ? 0 : found / (found + missed);
  const f1 = found === 0 ? 0 : (2 * found) / (2 * found + wrong + missed);
  return { precision, recall, f1 };
}

/** Matches a word; in scripts without spaces each character is a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{M}\p{N}])+/gu;

function counted(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORD)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** Normalizes the variants of spaces, quotes and dashes. */
const comparable = (text: string): string =>
  collapsed(text.normalize('NFKC'))
    .replace(/[‘’‚`´]/g, "'")
    .replace(/[“”„«»]/g, '"')
    .replace(/[‐‑‒–—]/g, '-')
    .replace(/ ?\| ?/g, ' ');

/** Comparisons of labels and results by field. */
export const RIGHT: {
  readonly [F in keyof PageLabels]-?: (label: string, read: string) => boolean;
} = {
  // Some readers append the site's name, as the page does.
  title: (label, read) => comparable(read).includes(comparable(label)),
  description: (label, read) => comparable(read) === comparable(label),
  language: (label, read) => read.slice(0, 2).toLowerCase() === label.slice(0, 2).toLowerCase(),
  image: (label, read) => read === label,
};

/**
 * Reports whether the reader's result matches the label.
 *
 * @returns undefined if the page has no such label.
 */
export function isRight(
  field: keyof PageLabels,
  page: LabelledPage,
  read: ReadPage,
): boolean | undefined {
  const label = page.facts?.[field];
  return label === undefined ? undefined : RIGHT[field](label, read[field] ?? '');
}
