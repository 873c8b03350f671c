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
  const inside = best === undefined ? readable : readable.filter((block) => isIn(block, best));
  const content = withoutLists(inside);
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
    if (end - index > FEW_LINKS) {
      while (isHead(kept.at(-1))) kept.pop();
      index = end;
    } else {
      kept.push(block);
      index++;
    }
  }
  return kept.filter((block, index) => {
    const next = kept[index + 1];
    if (block.kind !== 'heading') return true;
    return next !== undefined && !(next.kind === 'heading' && next.level <= block.level);
  });
}

/** Links in a row that may be a part of the text. */
const FEW_LINKS = 2;

/** Where the links that begin there end. */
function endOfLinks(blocks: readonly Block[], start: number): number {
  let end = start;
  while (isLinks(blocks[end])) end++;
  return end;
}

const isLinks = (block: Block | undefined): boolean =>
  block !== undefined && block.linkDensity >= 0.6;

/** A heading, or a word or two that stand for one. */
const isHead = (block: Block | undefined): boolean =>
  block?.kind === 'heading' ||
  (block?.kind === 'paragraph' && weightOf(block.text) < 40 && !/[.!?。！？]$/.test(block.text));
