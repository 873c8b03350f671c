import type { Block, Region } from './blocks.js';
import { wordsOf } from './places.js';
import { countWords, weightOf } from './plain-text.js';

/** Fewer words are no content that the rest could be told from. */
export const FEW_WORDS = 100;

/** Text in which sentences end. */
const SENTENCE = /[.!?…。！？؟۔।;:，、,]/;

/** As long as this it is a paragraph, also without a sentence's end. */
const LONG = 80;

/** What a block loses its region that is not content: a link in a list, a label, a button. */
const NOISE = 12;

/**
 * The main content: the blocks of the region whose text counts for most, less what in it is lists of links.
 * Each block counts as much as it says; what is mostly links, or short and without a sentence, counts against
 * its region. So the region around an article wins over the article's single paragraphs, and over the whole
 * page, which has its navigation as well.
 */
export function mainContent(blocks: readonly Block[]): readonly Block[] {
  const readable = blocks.filter(({ region }) => !region.isLeftOut);
  const best = bestRegion(readable);
  const inside = best === undefined ? readable : withTwins(best, readable);
  const content = trimmed(
    withoutButtons(withoutTeasers(fromHeadline(withoutLists(withLead(inside, readable))))),
  );
  if (wordsOfAll(content) >= FEW_WORDS) return content;
  return readable.length > 0 ? readable : blocks;
}

export const wordsOfAll = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + countWords(text), 0);

function bestRegion(blocks: readonly Block[]): Region | undefined {
  const values = new Map<Region, number>();
  for (const block of blocks) {
    const value = valueOf(block);
    for (let region: Region | undefined = block.region; region; region = region.parent) {
      values.set(region, (values.get(region) ?? 0) + value);
    }
  }
  let best: Region | undefined;
  let most = 0;
  for (const [region, sum] of values) {
    const value = sum * preference(region);
    // Of equals the deepest, which has less around it.
    if (value > most || (value === most && best && region.depth > best.depth)) {
      best = region;
      most = value;
    }
  }
  return best;
}

/** What a block says for its region. */
function valueOf({ kind, linkDensity, text }: Block): number {
  const weight = weightOf(text);
  if (kind === 'heading') return 0;
  if (linkDensity > 0.5) return -Math.min(weight, 200) * 0.5 - NOISE;
  const isSentence = weight >= LONG || (weight >= 25 && SENTENCE.test(text));
  const said = weight * (1 - linkDensity);
  if (kind === 'code') return said * 0.7;
  if (kind === 'row') return said * 0.4;
  if (isSentence) return said;
  return kind === 'item' ? said * 0.3 : -NOISE;
}

/** The page's own word for it. */
function preference({ element }: Region): number {
  if (!element) return 0.9;
  const { attribs, name } = element;
  if (attribs.itemprop === 'articleBody') return 1.2;
  if (name === 'article' || name === 'main' || attribs.role === 'main') return 1.1;
  const words = wordsOf(element);
  return words.some((word) => word === 'article' || word === 'content' || word === 'post')
    ? 1.05
    : 1;
}

/** What is in the region, and in those beside it that the page calls the same and that say something. */
function withTwins(best: Region, readable: readonly Block[]): readonly Block[] {
  const values = new Map<Region, number>();
  for (const block of readable) {
    const beside = twinAround(block, best);
    if (beside) values.set(beside, (values.get(beside) ?? 0) + valueOf(block));
  }
  const inside = readable.filter((block) => isIn(block, best));
  // One of many that say little is a teaser, as its twins are.
  if (wordsOfAll(inside) < FEW_WORDS) return inside;
  return readable.filter((block) => {
    const beside = twinAround(block, best);
    return isIn(block, best) || (beside !== undefined && (values.get(beside) ?? 0) > 0);
  });
}

/** The region around a block that stands beside another one, and is the same element with the same classes. */
function twinAround({ region }: Block, best: Region): Region | undefined {
  const classes = best.element?.attribs.class;
  if (!classes) return undefined;
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.parent !== best.parent || each === best) continue;
    const { attribs, name } = each.element ?? {};
    return name === best.element?.name && attribs?.class === classes ? each : undefined;
  }
  return undefined;
}

function isIn({ region }: Block, within: Region): boolean {
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each === within) return true;
  }
  return false;
}

/**
 * Leaves out blocks that are little but links, with what heads them, and headings that then have nothing
 * below them. One or two links between text belong to it.
 */
function withoutLists(blocks: readonly Block[]): readonly Block[] {
  const kept: Block[] = [];
  for (let index = 0; index < blocks.length;) {
    const block = blocks[index];
    if (!block) break;
    const end = endOfLinks(blocks, index);
    if (end - index > FEW_LINKS && !announces(kept.at(-1))) {
      while (isHead(kept.at(-1))) kept.pop();
      index = end;
    } else {
      kept.push(...blocks.slice(index, Math.max(end, index + 1)));
      index = Math.max(end, index + 1);
    }
  }
  return kept.filter((block, index) => {
    const next = kept[index + 1];
    if (block.kind !== 'heading') return true;
    return next !== undefined && !(next.kind === 'heading' && next.level <= block.level);
  });
}

/** Blocks between a headline and the content that are looked at. */
const MAX_LEAD = 12;

/** With the page's headline, where that stands just above, and the sentences in between: what it is about. */
function withLead(inside: readonly Block[], readable: readonly Block[]): readonly Block[] {
  const [first] = inside;
  if (first === undefined || inside.some(isHeadline)) return inside;
  const start = readable.indexOf(first);
  const above = readable.slice(Math.max(0, start - MAX_LEAD), start);
  const isNext = above.at(-1)?.kind === 'heading' && first.kind !== 'heading';
  const at = isNext ? above.length - 1 : above.findLastIndex(isHeadline);
  if (at < 0) return inside;
  const lead = above.slice(at + 1).filter((block) => block.kind === 'paragraph' && !isLinks(block));
  return [...above.slice(at, at + 1), ...lead.filter((block) => !isLabel(block)), ...inside];
}

const isHeadline = ({ kind, level }: Block): boolean => kind === 'heading' && level === 1;

/** The part of the content that may stand above its headline. */
const ABOVE = 0.3;

/** What stands above the page's headline is not said under it: lists of other articles, dates, what a site is. */
function fromHeadline(blocks: readonly Block[]): readonly Block[] {
  const at = blocks.findIndex(isHeadline);
  if (at <= 0) return blocks;
  const above = blocks.slice(0, at);
  return sumOf(above) <= ABOVE * sumOf(blocks) ? blocks.slice(at) : blocks;
}

/** Longer text below a heading is no teaser. */
const TEASER = 400;

/**
 * Leaves out headings that are links, with the few lines below each: they are about other pages. Not where that
 * is half of what the page says: then it is a page about other pages.
 */
function withoutTeasers(blocks: readonly Block[]): readonly Block[] {
  const teasers = new Set<Block>();
  for (let index = 0; index < blocks.length;) {
    let end = index + 1;
    while (end < blocks.length && blocks[end]?.kind !== 'heading') end++;
    const section = blocks.slice(index, end);
    const [head, ...below] = section;
    const isTeaser = head?.kind === 'heading' && head.level > 1 && isLinks(head);
    if (isTeaser && sumOf(below) <= TEASER) for (const block of section) teasers.add(block);
    index = end;
  }
  if (sumOf([...teasers]) * 2 > sumOf(blocks)) return blocks;
  return blocks.filter((block) => !teasers.has(block));
}

/** Leaves out short links that are there more than once: what can be done with each comment or each entry. */
function withoutButtons(blocks: readonly Block[]): readonly Block[] {
  const seen = new Set<string>();
  const again = new Set<string>();
  for (const block of blocks) {
    if (!isLinks(block) || block.kind === 'heading' || weightOf(block.text) >= LONG) continue;
    (seen.has(block.text) ? again : seen).add(block.text);
  }
  return blocks.filter((block) => !isLinks(block) || !again.has(block.text));
}

/** More lines without a sentence are verse, or a list of another kind. */
const MAX_LABELS = 6;

/**
 * Around the headline, up to the first long text, and after the last sentence, there are dates, authors,
 * counters, tags and buttons.
 */
function trimmed(blocks: readonly Block[]): readonly Block[] {
  const labels = new Set<Block>();
  let heads = 0;
  for (const block of blocks.slice(0, 2 * MAX_LABELS)) {
    if (block.kind === 'heading' ? heads++ > 0 : !isLabel(block) && weightOf(block.text) >= LONG)
      break;
    if (isLabel(block)) labels.add(block);
  }
  if (labels.size > MAX_LABELS) labels.clear();
  let end = blocks.length;
  while (end > 0 && isTail(blocks[end - 1])) end--;
  const last = blocks.length - end > MAX_LABELS ? blocks.length : end;
  return blocks.filter((block, index) => index < last && !labels.has(block) && !isCredit(block));
}

/** What ends no text: labels, headings, lines that announce something, short ones that are a link, sentence or not. */
const isTail = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  isLabel(block) ||
  (block !== undefined &&
    weightOf(block.text) < LONG &&
    (isLinks(block) || /[:：]$/.test(block.text)));

/** A short line with a number or a link in it, or of a few words, that does not end as a sentence does. */
function isLabel(block: Block | undefined): boolean {
  if (block === undefined || SENTENCE_END.test(block.text)) return false;
  const weight = weightOf(block.text);
  if (block.kind === 'item') return isLinks(block) && weight < LONG;
  if (block.kind !== 'paragraph') return false;
  if (isLinks(block)) return true;
  return weight < LONG && (weight < FEW_LETTERS || block.linkDensity > 0 || /\d/.test(block.text));
}

const FEW_LETTERS = 25;

/** Whose picture it is. */
const isCredit = ({ kind, text }: Block): boolean =>
  kind === 'paragraph' && text.includes('©') && weightOf(text) < LONG;

/** With what may stand after it. */
const SENTENCE_END = /[.!?…。！？؟۔।][\s"'”’»›)\]」』）]*$/;

const sumOf = (blocks: readonly Block[]): number =>
  blocks.reduce((sum, { text }) => sum + weightOf(text), 0);

/** Links in a row that may be a part of the text. */
const FEW_LINKS = 2;

/** Where the links that begin there end. */
function endOfLinks(blocks: readonly Block[], start: number): number {
  let end = start;
  while (isLinks(blocks[end])) end++;
  return end;
}

/** Links that a line announces are a part of what it says. */
const announces = (block: Block | undefined): boolean =>
  block?.kind === 'paragraph' && /[:：]$/.test(block.text);

const isLinks = (block: Block | undefined): boolean =>
  block !== undefined && block.linkDensity >= 0.6;

/** A heading, or a word or two that stand for one. */
const isHead = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  (block?.kind === 'paragraph' && weightOf(block.text) < 40 && !/[.!?。！？]$/.test(block.text));
