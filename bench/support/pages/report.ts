import { printTable } from '../table.js';
import type { LabelledPage, PageLabels, PageReader, ReadPage } from './labelled-page.js';
import { BAD, isRight, scoreOf, type Score } from './score.js';

const AIM = 0.965;
const AIM_BAD = 3;
const FIELDS: readonly (keyof PageLabels)[] = ['title', 'description', 'language', 'image'];

export type Scores = ReadonlyMap<PageReader, readonly (Score | undefined)[]>;

/** Returns the scores of each reader that extracts texts, for each page. */
export function scores(
  pages: readonly LabelledPage[],
  results: ReadonlyMap<PageReader, readonly ReadPage[]>,
): Scores {
  const all = new Map<PageReader, (Score | undefined)[]>();
  for (const [reader, read] of results) {
    if (read.every(({ text }) => text === undefined)) continue;
    const of = (page: LabelledPage, index: number) => scoreOf(page, read[index] ?? {});
    all.set(reader, pages.map(of));
  }
  return all;
}

export function printKinds(pages: readonly LabelledPage[], texts: Scores): void {
  const readers = [...texts.keys()];
  const rowOf = (name: string, belongs: (page: LabelledPage) => boolean) => {
    const count = pages.filter((page, index) => belongs(page) && hasScore(texts, index)).length;
    const mean = (of: readonly (Score | undefined)[]) =>
      meanOf(of.filter((_, index) => belongs(at(pages, index))).map((each) => each?.f1));
    return [name, count, ...readers.map((reader) => mean(texts.get(reader) ?? []))];
  };
  const kinds = [...new Set(pages.map(({ kind }) => kind))];
  console.log('\nF1 by kind of page, the mean of its pages:\n');
  printTable(
    ['kind', 'pages', ...readers.map(({ name }) => name)],
    kinds.map((kind) => rowOf(kind, (page) => page.kind === kind)),
  );
  const own = pages.filter(isOwn);
  const languages = [...new Set(own.map(({ facts }) => facts?.language ?? ''))].toSorted();
  if (own.length === 0) return;
  console.log('By language, of the pages of our own making:\n');
  printTable(
    ['language', 'pages', ...readers.map(({ name }) => name)],
    languages.map((language) =>
      rowOf(language, (page) => isOwn(page) && page.facts?.language === language),
    ),
  );
}

/** Reports whether people labelled the whole text of a page. */
const isOwn = ({ kind, text }: LabelledPage) =>
  text !== undefined && kind !== 'as Readability' && kind !== NEWSPAPER;

/** Labels without headlines. */
const NEWSPAPER = 'news (newspaper4k)';

const hasScore = (texts: Scores, index: number) =>
  [...texts.values()].some((each) => each[index] !== undefined);

/** Prints the sums without pages whose labels come from another reader. */
export function printSums(pages: readonly LabelledPage[], texts: Scores): void {
  const groups = {
    'whole texts': (page: LabelledPage) => isOwn(page) && !page.kind.includes('unseen'),
    'whole texts, unseen': (page: LabelledPage) => isOwn(page) && page.kind.endsWith('(unseen)'),
    'whole texts, unseen 3': (page: LabelledPage) =>
      isOwn(page) && page.kind.endsWith('(unseen 3)'),
    'whole texts without headlines': ({ kind }: LabelledPage) => kind === NEWSPAPER,
    'pieces of texts': ({ text }: LabelledPage) => text === undefined,
  };
  const rows: (string | number)[][] = [];
  for (const [group, belongs] of Object.entries(groups)) {
    const [first] = texts.keys();
    for (const [reader, all] of texts) {
      const some = all.filter((each, index) => each && belongs(at(pages, index)));
      if (some.length === 0) continue;
      const mean = (read: (score: Score) => number) =>
        meanOf(some.map((each) => each && read(each)));
      const bad = some.filter((each) => each !== undefined && each.f1 < BAD).length;
      rows.push([
        `${reader.name}: ${group}`,
        mean(({ precision }) => precision),
        mean(({ recall }) => recall),
        mean(({ f1 }) => f1),
        reader === first ? AIM : '',
        ((bad / some.length) * 100).toFixed(1),
        reader === first ? AIM_BAD : '',
      ]);
    }
  }
  printTable(['reader', 'precision', 'recall', 'F1', 'aim', `% under ${BAD}`, 'aim'], rows);
}

export function printFacts(
  pages: readonly LabelledPage[],
  results: ReadonlyMap<PageReader, readonly ReadPage[]>,
): void {
  const labelled = (field: keyof PageLabels) =>
    pages.filter(({ facts }) => facts?.[field] !== undefined).length;
  const rightOf = (field: keyof PageLabels, read: readonly ReadPage[]) => {
    const right = pages.filter((page, index) => isRight(field, page, read[index] ?? {}) === true);
    return labelled(field) === 0 ? '-' : (right.length / labelled(field)).toFixed(3);
  };
  console.log('Right, of the pages that have such a label:\n');
  printTable(
    ['reader', ...FIELDS.map((field) => `${field} (${labelled(field)})`)],
    [...results].map(([reader, read]) => [
      reader.name,
      ...FIELDS.map((field) => rightOf(field, read)),
    ]),
  );
}

export function printWorst(pages: readonly LabelledPage[], texts: Scores, count: number): void {
  const own = [...texts.values()][0] ?? [];
  const worst = pages
    .map((page, index) => ({ page, score: own[index] }))
    .filter(({ page: { kind } }) => kind !== 'as Readability' && !kind.includes('unseen'))
    .sort((a, b) => (a.score?.f1 ?? 1) - (b.score?.f1 ?? 1))
    .slice(0, count);
  for (const { page, score } of worst) {
    const { f1 = Number.NaN, precision = Number.NaN, recall = Number.NaN } = score ?? {};
    const values = [f1, precision, recall].map((value) => value.toFixed(3)).join(' ');
    console.log(`${values} ${page.kind}: ${page.name}`);
  }
}

function meanOf(values: readonly (number | undefined)[]): string {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return '-';
  return (known.reduce((sum, value) => sum + value, 0) / known.length).toFixed(3);
}

function at<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new RangeError(`There is no item ${index}`);
  return found;
}
