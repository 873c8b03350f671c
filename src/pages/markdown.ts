import type { Element } from 'domhandler';
import type { Block, Region, Run } from './blocks.js';
import { fenceOf, inlineMarkdown, plainMarkdown } from './inline-markdown.js';

/** Joins the texts of blocks, with an empty line except between items of a list or rows of a table. */
export function plainText(blocks: readonly Block[]): string {
  let whole = '';
  let before: Block | undefined;
  for (const block of blocks) {
    const goesOn = before?.kind === block.kind && (block.kind === 'item' || block.kind === 'row');
    if (before) whole += goesOn && !areParagraphs(before, block) ? '\n' : '\n\n';
    whole += block.text;
    before = block;
  }
  return whole;
}

/** Reports whether two blocks in a row are paragraphs of one list item. */
function areParagraphs(before: Block, { region, isProduct = false }: Block): boolean {
  if (isProduct) return false;
  const item = itemAround(region);
  if (item === undefined || itemAround(before.region) !== item) return false;
  // Two line breaks divide a text without an element around its parts.
  return before.region === region || (isParagraph(before.region) && isParagraph(region));
}

const isParagraph = ({ element }: Region): boolean => element?.name === 'p';

function itemAround(region: Region): Region | undefined {
  let around: Region | undefined = region;
  while (around && !(around.element && ITEMS.has(around.element.name))) around = around.parent;
  return around;
}

/** Joins blocks as Markdown: headings, lists, quotes, tables, code, links and emphasis. */
export function markdown(blocks: readonly Block[], base: string): string {
  const containers = new Containers();
  const writer = new MarkdownWriter();
  for (let index = 0; index < blocks.length;) {
    const block = blocks[index];
    if (!block) break;
    const path = containers.around(block);
    const rows = rowsAt(blocks, index);
    index += Math.max(1, rows.length);
    const cells = rows.map(({ runs }) => cellsOf(runs, base));
    if (cells.some(({ length }) => length > 1)) writer.add(tableOf(cells), path);
    else if (rows.length === 0) writer.add(markdownOf(block, base), path);
    else for (const row of rows) writer.add(markdownOf(row, base), path);
  }
  return writer.whole;
}

function markdownOf({ kind, level, runs, text }: Block, base: string): string {
  if (kind === 'code') return fenced(text);
  if (kind !== 'heading') return withoutMarks(inlineMarkdown(runs, base));
  // A number sign at the end would close the heading.
  return `${'#'.repeat(level)} ${plainMarkdown(text).replace(/(?<!\S)#+$/, '\\$&')}`;
}

/** Wraps code in a fence longer than any run of backticks in it. */
function fenced(code: string): string {
  const fence = fenceOf(code, 3);
  return `${fence}\n${code}\n${fence}`;
}

/** Escapes the start of a paragraph that would begin a heading, list, quote or line. */
const withoutMarks = (text: string): string =>
  text
    .replace(/^(?:[-+](?=[-\s]|$)|>|#(?=#{0,5}(?:\s|$)))/, '\\$&')
    .replace(/^(\d{1,9})(?=[.)](?:\s|$))/, '$1\\');

/** Returns the rows of one table from `start` on; none if the block is no row with cells. */
function rowsAt(blocks: readonly Block[], start: number): readonly Block[] {
  const table = tableAround(blocks[start]);
  if (table === undefined) return [];
  let end = start + 1;
  while (tableAround(blocks[end]) === table) end++;
  return blocks.slice(start, end);
}

function tableAround(block: Block | undefined): Region | undefined {
  if (block?.kind !== 'row') return undefined;
  if (block.region.element?.name !== 'tr' && !block.runs.some(isBorder)) return undefined;
  let region: Region | undefined = block.region;
  while (region.parent && region.element?.name !== 'table') region = region.parent;
  return region;
}

const isBorder = ({ style }: Run): boolean => style === 'cell';

function cellsOf(runs: readonly Run[], base: string): readonly string[] {
  const cells: Run[][] = [[]];
  for (const run of runs) {
    if (isBorder(run)) cells.push([]);
    else cells.at(-1)?.push(run);
  }
  return cells.map((cell) => inlineMarkdown(cell, base, true));
}

function tableOf([head = [], ...rows]: readonly (readonly string[])[]): string {
  const width = rows.reduce((most, { length }) => Math.max(most, length), head.length);
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const whole = Array.from({ length: width }, (_, column) => head[column] ?? '');
  return [whole, Array<string>(width).fill('---'), ...rows].map(line).join('\n');
}

/** A quote, or an item of a list. */
interface Container {
  /** The element of the quote or list. */
  readonly around: Element | undefined;
  /** The element or block of the item; undefined for a quote, and for any item of the list. */
  readonly item: Element | Block | undefined;
  readonly isList: boolean;
}

/** Maximum number of containers around a block; deeper ones are left out. */
const MAX_CONTAINERS = 20;

/** The quotes and list items around blocks, outermost first. */
class Containers {
  readonly #ofRegions = new Map<Region, readonly Container[]>();

  around(block: Block): readonly Container[] {
    const path = this.#of(block.region);
    const last = path.at(-1);
    const list = last?.isList && last.item === undefined ? last : undefined;
    const outer = list ? path.slice(0, -1) : path;
    if (block.kind !== 'item' || (last?.isList && !list)) return outer;
    // A text beside the items of its list, or a product, which may be in no list.
    return [...outer, { around: list?.around, item: block, isList: true }];
  }

  /** Returns the containers around a region. Recursive, because the tree's depth is bounded. */
  #of(region: Region): readonly Container[] {
    const known = this.#ofRegions.get(region);
    if (known) return known;
    const outer = region.parent ? this.#of(region.parent) : [];
    const path = pathOf(region.element, outer);
    this.#ofRegions.set(region, path);
    return path;
  }
}

const LISTS = new Set(['ul', 'ol', 'dl']);
const ITEMS = new Set(['li', 'dt', 'dd']);

function pathOf(element: Element | undefined, outer: readonly Container[]): readonly Container[] {
  if (!element) return outer;
  const last = outer.at(-1);
  if (ITEMS.has(element.name) && last?.isList && last.item === undefined) {
    return [...outer.slice(0, -1), { ...last, item: element }];
  }
  const isList = LISTS.has(element.name);
  if ((!isList && element.name !== 'blockquote') || outer.length === MAX_CONTAINERS) return outer;
  return [...outer, { around: element, item: undefined, isList }];
}

/** A container that further blocks may continue. */
interface Open extends Container {
  /** The sign of the quote or of the list's items. */
  readonly mark: string;
  /** Begins the first line, and each further line. */
  readonly begin: string;
  readonly prefix: string;
}

/** Writes blocks into their containers. */
class MarkdownWriter {
  whole = '';
  #open: readonly Open[] = [];
  readonly #numbers = new Map<Element | undefined, number>();

  add(text: string, path: readonly Container[]): void {
    let shared = 0;
    while (isSame(this.#open[shared], path[shared])) shared++;
    const kept = this.#open.slice(0, shared);
    const before = this.#open[shared];
    const begun = path
      .slice(shared)
      .map((container, index) => this.#begin(container, index === 0 ? before : undefined));
    const outside = kept.map(({ prefix }) => prefix).join('');
    const inside = outside + begun.map(({ prefix }) => prefix).join('');
    if (this.whole !== '') {
      this.whole += isTight(begun, before, kept.at(-1)) ? '\n' : `\n${outside.trimEnd()}\n`;
    }
    const [first = '', ...lines] = text.split('\n');
    this.whole += outside + begun.map(({ begin }) => begin).join('') + first;
    for (const line of lines) this.whole += `\n${(inside + line).trimEnd()}`;
    this.#open = [...kept, ...begun];
  }

  /** Begins a container. @param before the container currently open at this level. */
  #begin(container: Container, before: Open | undefined): Open {
    const { around, isList } = container;
    if (!isList) return { ...container, mark: '>', begin: '> ', prefix: '> ' };
    const isNumbered = around?.name === 'ol';
    const [usual, other] = isNumbered ? ['.', ')'] : ['-', '*'];
    // Two lists in a row with the same mark would be a single list.
    const isNext = before?.isList === true && before.around === around;
    const mark = isNext ? before.mark : before?.mark === usual ? other : usual;
    const begin = `${isNumbered ? this.#nextNumber(around) : ''}${mark} `;
    return { ...container, mark, begin, prefix: ' '.repeat(begin.length) };
  }

  #nextNumber(list: Element): number {
    const number = this.#numbers.get(list) ?? startOf(list);
    this.#numbers.set(list, Math.min(number + 1, MAX_NUMBER));
    return number;
  }
}

/** Reports whether containers follow without an empty line: the next item, or a list within an item. */
function isTight(
  [first, ...inner]: readonly Open[],
  before: Open | undefined,
  outer: Open | undefined,
): boolean {
  // Only a list that begins with 1 may follow a paragraph without an empty line.
  const isFirst = ({ begin }: Open) => /^(?:\D|1\D)/.test(begin);
  if (!first?.isList || !inner.every(isFirst)) return false;
  if (before) return before.isList && before.around === first.around;
  return outer?.isList === true && isFirst(first);
}

/** Largest number of an item in Markdown. */
const MAX_NUMBER = 999_999_999;

const startOf = ({ attribs: { start = '' } }: Element): number =>
  /^\s{0,9}\d{1,9}\s{0,9}$/.test(start) ? Number(start) : 1;

/** Reports whether a container is the open one, or any item of the open list. */
const isSame = (open: Open | undefined, container: Container | undefined): boolean =>
  open !== undefined &&
  container !== undefined &&
  open.isList === container.isList &&
  open.around === container.around &&
  (container.item === undefined || open.item === container.item);
