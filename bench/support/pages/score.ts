import { collapsed } from '../../../src/pages/plain-text.js';
import type { LabelledPage, PageLabels, ReadPage } from './labelled-page.js';

/** How much of what was read belongs, and how much of what belongs was read; from 0 to 1. */
export interface Score {
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
}

/** A page with half of it wrong is one that nobody can use. */
export const BAD = 0.5;

/** @returns undefined where nobody said what the page's text is. */
export function scoreOf(page: LabelledPage, read: ReadPage): Score | undefined {
  const text = withHeading(page, read);
  if (page.text !== undefined) return wordScore(page.text, text);
  if (page.holds === undefined) return undefined;
  return snippetScore(page.holds, page.lacks ?? [], text);
}

/** Who says what the page is called apart from its text has read that as well. */
function withHeading({ heading }: LabelledPage, { text = '', title = '' }: ReadPage): string {
  if (heading === undefined || text === '') return text;
  const isIn = (whole: string) => comparable(whole).includes(comparable(heading));
  return !isIn(text) && isIn(title) ? `${heading} ${text}` : text;
}

/** By words, each as often as it is there. */
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

/** @param wrong what was read and does not belong; `missed` the other way round. */
export function score(found: number, wrong: number, missed: number): Score {
  const precision = found + wrong === 0 ? 0 : found / (found + wrong);
  const recall = found + missed === 0 ? 0 : found / (found + missed);
  const f1 = found === 0 ? 0 : (2 * found) / (2 * found + wrong + missed);
  return { precision, recall, f1 };
}

/** A character of what is written without spaces is a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{M}\p{N}])+/gu;

function counted(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORD)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

/** Spaces, quotes and dashes are written in many ways. */
const comparable = (text: string): string =>
  collapsed(text.normalize('NFKC'))
    .replace(/[‘’‚`´]/g, "'")
    .replace(/[“”„«»]/g, '"')
    .replace(/[‐‑‒–—]/g, '-')
    .replace(/ ?\| ?/g, ' ');

/** Whether a reader is right about what a page is called and so on, by field. */
export const RIGHT: {
  readonly [F in keyof PageLabels]-?: (label: string, read: string) => boolean;
} = {
  // Some name the site as well, as the page does.
  title: (label, read) => comparable(read).includes(comparable(label)),
  description: (label, read) => comparable(read) === comparable(label),
  language: (label, read) => read.slice(0, 2).toLowerCase() === label.slice(0, 2).toLowerCase(),
  image: (label, read) => read === label,
};

/** @returns undefined where the page has no such label. */
export function isRight(
  field: keyof PageLabels,
  page: LabelledPage,
  read: ReadPage,
): boolean | undefined {
  const label = page.facts?.[field];
  return label === undefined ? undefined : RIGHT[field](label, read[field] ?? '');
}
