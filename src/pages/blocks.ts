import { type ChildNode, type Document, type Element, isTag, isText } from 'domhandler';
import {
  BLOCKS,
  elementsOf,
  HEADINGS,
  isUnread,
  isUnreadAtAll,
  shortTextOf,
  weighText,
} from './elements.js';
import { isBoilerplate, isUndisplayed, marksOf, type Marks } from './boilerplate-elements.js';
import { isGutter } from './code-gutter.js';
import { collapsed } from './plain-text.js';

export type BlockKind = 'heading' | 'paragraph' | 'item' | 'quote' | 'code' | 'row';

/** Text with uniform formatting. */
export interface Run {
  readonly text: string;
  /** The link's target as written in the page. */
  readonly href: string | undefined;
  /** `cell` is the border between two cells of a row. */
  readonly style: 'plain' | 'strong' | 'emphasis' | 'code' | 'cell';
}

const CELL: Run = { text: ' | ', href: undefined, style: 'cell' };
/** Follows an empty cell at the start of a row. */
const EMPTY_CELL: Run = { ...CELL, text: '' };

export interface Region {
  readonly element: Element | undefined;
  readonly parent: Region | undefined;
  readonly depth: number;
  /** True if the element or an ancestor is navigation or similar. */
  readonly isLeftOut: boolean;
}

/** A paragraph without line breaks, or lines of code. */
export interface Block {
  readonly kind: BlockKind;
  /** Level 1 to 6 of a heading. */
  readonly level: number;
  /** The text with its formatting; a row also has the empty cells before the first text. */
  readonly runs: readonly Run[];
  readonly text: string;
  /** The share of letters inside links. */
  readonly linkDensity: number;
  /** Distinct targets of the block's links. */
  readonly links: ReadonlySet<string>;
  readonly region: Region;
  /** True for a line of a product's name, price and description. */
  readonly isProduct?: boolean;
}

/** The formatting context of the text being read. */
interface Context {
  readonly region: Region;
  readonly kind: BlockKind;
  readonly level: number;
  readonly href: string | undefined;
  readonly style: Run['style'];
  /** True in a cell of a layout table. */
  readonly isInCell: boolean;
}

const STYLES: Readonly<Record<string, Run['style']>> = {
  b: 'strong',
  strong: 'strong',
  i: 'emphasis',
  em: 'emphasis',
  code: 'code',
  kbd: 'code',
  samp: 'code',
  tt: 'code',
};

export function blocksOf(document: Document): Block[] {
  // Some pages have their text only in `noscript` until their scripts run.
  const scripted = weighText(document);
  const plain = holdsNoscript(document) ? weighText(document, isUnreadAtAll) : scripted;
  const isPlain = (plain.get(document) ?? 0) > MUCH_MORE * (scripted.get(document) ?? 0);
  const [weights, unread] = isPlain ? [plain, isUnreadAtAll] : [scripted, isUnread];
  const letters = (element: Element) => weights.get(element) ?? 0;
  const reader = new BlockReader(letters, unread, marksOf(document, weights));
  const root: Region = { element: undefined, parent: undefined, depth: 0, isLeftOut: false };
  const usual = { kind: 'paragraph', level: 0, style: 'plain', isInCell: false } as const;
  reader.readAll(document.children, { ...usual, region: root, href: undefined });
  reader.flush();
  return reader.blocks;
}

/** Factor by which the text with `noscript` must exceed the text without, to be used instead. */
const MUCH_MORE = 2;

/** Letters: shorter `noscript` texts are mostly notes that scripts are required. */
const NOTE = 180;

function holdsNoscript(document: Document): boolean {
  for (const element of elementsOf(document)) {
    if (element.name === 'noscript' && shortTextOf(element, NOTE) === undefined) return true;
  }
  return false;
}

class BlockReader {
  readonly blocks: Block[] = [];
  #runs: Run[] = [];
  #context: Context | undefined;
  /** Line breaks since the last text. */
  #breaks = 0;
  /** True at the end of a line of code that is an element. */
  #isLineEnd = false;
  /** Cells of the row so far, and those before the first text. */
  #cells = 0;
  #emptyCells = 0;

  /** @param letters returns the letters of an element's text outside links. */
  constructor(
    private readonly letters: (element: Element) => number,
    private readonly unread: (element: Element) => boolean,
    private readonly marks: Marks,
  ) {}

  /** Reads the nodes recursively; the tree's depth is bounded. */
  readAll(nodes: readonly ChildNode[], context: Context): void {
    for (const node of nodes) {
      if (isText(node)) this.#addText(node.data, context);
      else if (isTag(node)) this.#read(node, context);
    }
  }

  #read(element: Element, context: Context): void {
    const { name } = element;
    if (name === 'br') return this.#breakLine(context);
    if (this.unread(element) || this.#isHiddenLine(element)) return;
    const isInCode = context.kind === 'code';
    if (isGutter(element, isInCode)) return;
    if (isInCode && isLine(element)) return this.#readLine(element, context);
    if (!BLOCKS.has(name)) {
      // A `cite` at the start of a quote names its source and becomes a block of its own.
      const isAbove = name === 'cite' && context.kind === 'quote' && this.#runs.length === 0;
      this.readAll(element.children, inlineContext(element, context));
      if (isAbove) this.flush();
      return;
    }
    // Cells of a row are joined into one line.
    if ((name === 'td' || name === 'th') && context.kind === 'row' && !holdsBlocks(element)) {
      if (this.#runs.length > 0) this.#runs.push(CELL);
      else this.#emptyCells = this.#cells;
      this.#cells++;
      return this.readAll(element.children, context);
    }
    this.flush();
    this.readAll(element.children, this.#inBlock(element, context));
    this.flush();
  }

  /** Reports whether a hidden element is not the rest of a line, which a button of the page shows. */
  #isHiddenLine(element: Element): boolean {
    return this.#runs.length === 0 && !BLOCKS.has(element.name) && isUndisplayed(element);
  }

  /** Reads an element within code, which begins and ends a line. */
  #readLine(element: Element, context: Context): void {
    this.#isLineEnd = true;
    this.readAll(element.children, context);
    this.#isLineEnd = true;
  }

  #inBlock(element: Element, context: Context): Context {
    const { region: parent } = context;
    const isOut = parent.isLeftOut || isBoilerplate(element, this.letters(element), this.marks);
    return blockContext(element, {
      ...context,
      region: { element, parent, depth: parent.depth + 1, isLeftOut: isOut },
    });
  }

  #addText(text: string, context: Context): void {
    const { href, kind, style } = context;
    if (kind !== 'code' && this.#runs.length === 0 && text.trim() === '') return;
    if (text.trim() !== '') this.#breaks = 0;
    this.#context ??= context;
    const before = this.#isLineEnd ? this.#runs.at(-1)?.text : undefined;
    this.#isLineEnd = false;
    if (before !== undefined && !before.endsWith('\n') && !text.startsWith('\n')) {
      this.#runs.push({ text: '\n', href, style });
    }
    this.#runs.push({ text, href, style });
  }

  /** Breaks the line; two breaks in a row end a paragraph. */
  #breakLine(context: Context): void {
    if (context.kind === 'code') return this.#addText('\n', context);
    this.#breaks++;
    if (this.#breaks > 1) return this.flush();
    if (this.#runs.length > 0) this.#runs.push({ text: '\n', href: undefined, style: 'plain' });
  }

  flush(): void {
    const context = this.#context;
    const runs = this.#runs;
    this.#context = undefined;
    this.#runs = [];
    this.#breaks = 0;
    this.#isLineEnd = false;
    const emptyCells = this.#emptyCells;
    this.#cells = this.#emptyCells = 0;
    if (!context) return;
    const whole = runs.map(({ text }) => text).join('');
    const { kind, level, region } = context;
    const text = kind === 'code' ? trimLines(whole) : collapsed(whole);
    if (text === '') return;
    let inLinks = 0;
    let letters = 0;
    const links = new Set<string>();
    for (const run of runs) {
      const { length } = run.text.trim();
      letters += length;
      if (run.href !== undefined && !(kind === 'heading' && run.href.startsWith('#'))) {
        inLinks += length;
        if (length > 0) links.add(run.href);
      }
    }
    const linkDensity = letters === 0 ? 0 : inLinks / letters;
    const empty = Array<Run>(emptyCells).fill(EMPTY_CELL);
    const all = emptyCells > 0 ? [...empty, ...runs] : runs;
    this.blocks.push({ kind, level, runs: all, text, linkDensity, links, region });
  }
}

function inlineContext({ attribs, name }: Element, context: Context): Context {
  const style = STYLES[name] ?? context.style;
  const href = name === 'a' ? (attribs.href ?? context.href) : context.href;
  if (style === context.style && href === context.href) return context;
  return { ...context, style, href };
}

function blockContext(element: Element, context: Context): Context {
  const { name } = element;
  const heading = HEADINGS[name];
  if (heading !== undefined) return { ...context, kind: 'heading', level: heading };
  if (name === 'pre') return { ...context, kind: 'code' };
  if (name === 'blockquote') return { ...context, kind: 'quote' };
  if (name === 'tr') {
    const isLayout = (context.kind === 'row' || context.isInCell) && !isRow(element);
    return { ...context, kind: isLayout ? 'paragraph' : 'row', level: 0 };
  }
  if ((name === 'td' || name === 'th') && context.kind === 'row' && holdsParagraphs(element)) {
    return { ...context, kind: 'paragraph', isInCell: true };
  }
  if (ITEMS.has(name)) return { ...context, kind: 'item', level: 0 };
  return context;
}

/** Elements that are lines, or hold lines, within code. */
const LINES = new Set(['div', 'p', 'ol', 'ul', 'li', 'table', 'tbody', 'tr', 'td']);

/** Class names of lines. */
const LINE = /(?:^|[\s-])line(?!\S)/;

const isLine = ({ attribs, name }: Element): boolean =>
  LINES.has(name) || (name === 'span' && LINE.test(attribs.class ?? ''));

const ITEMS = new Set(['ul', 'ol', 'dt', 'dd']);

/** Reports whether a table row has several cells; a single cell is mostly page layout. */
function isRow({ children }: Element): boolean {
  const cells = children.filter(
    (child) => isTag(child) && (child.name === 'td' || child.name === 'th'),
  );
  return cells.length > 1;
}

/** Reports whether a cell has block-level content, which means that the table is page layout. */
const holdsBlocks = (cell: Element): boolean =>
  cell.children.some((child) => isTag(child) && BLOCKS.has(child.name)) || holdsParagraphs(cell);

/** Reports whether two line breaks in a row divide the text of a cell. */
function holdsParagraphs(cell: Element): boolean {
  let breaks = 0;
  /** Recursive, because the tree's depth is bounded. */
  const holds = ({ children }: Element): boolean =>
    children.some((child) => {
      if (isText(child) && child.data.trim() !== '') breaks = 0;
      if (!isTag(child) || BLOCKS.has(child.name)) return false;
      return child.name === 'br' ? ++breaks > 1 : holds(child);
    });
  return holds(cell);
}

function trimLines(text: string): string {
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  while (lines.length > 0 && lines[0]?.trim() === '') lines.shift();
  while (lines.length > 0 && lines.at(-1)?.trim() === '') lines.pop();
  return lines.map((line) => line.trimEnd()).join('\n');
}
