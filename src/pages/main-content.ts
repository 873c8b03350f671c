import {
  isHeadline,
  isHome,
  isLabel,
  isLinks,
  isOffer,
  isShort,
  isText,
  LONG,
  sumOf,
} from './block-kinds.js';
import type { Block, Region } from './blocks.js';
import { isBelowText, withoutBoilerplate } from './boilerplate.js';
import { goodsOn, withoutTerms } from './goods.js';
import { wordsOf } from './places.js';
import { countWords, weightOf } from './plain-text.js';
import { SENTENCE_END, withoutPostLabels } from './posts.js';
import { type Shelves, shelvesOn, thingOf } from './shelves.js';

/** Fewer words are no content that the rest could be told from. */
export const FEW_WORDS = 100;

/** Letters: a region that says less may be a part of the content. */
const ENOUGH = 600;

/** Letters: a page that says more is no shop's list of its goods. */
const MUCH = 1_200;

/** Letters: a page that says more is about things, and its shelves are no more than beside that. */
const LONG_TEXT = 2_500;

/** What a small region holds of all that a page says, to be its content. */
const MOST = 0.7;

/** Letters: what says less may be none. */
const LITTLE = 180;

/** Text in which sentences end. */
const SENTENCE = /[.!?…。！？؟۔।;:，、,]/;

/** What a block loses its region that is not content: a link in a list, a label, a button. */
const NOISE = 12;

/**
 * The main content: the blocks of the region whose text counts for most, less what in it is lists of links.
 * Each block counts as much as it says; what is mostly links, or short and without a sentence, counts against
 * its region. So the region around an article wins over the article's single paragraphs, and over the whole
 * page, which has its navigation as well.
 */
export function mainContent(blocks: readonly Block[]): readonly Block[] {
  const { content, readable } = contentOf(blocks);
  if (wordsOfAll(content) >= FEW_WORDS) return content;
  return readable.length > 0 ? readable : blocks;
}

/**
 * The same for who wants nothing else: of a page that says little as well. Where its region is a small part of that,
 * such as one part of a front page, it is all of it.
 */
export function mainContentAlone(blocks: readonly Block[]): readonly Block[] {
  const { content, goods, isOfShelves, leftOut, readable } = contentOf(blocks);
  if (isOfShelves || sumOf(content) >= ENOUGH) return content;
  const all = refined(withCards(withinMain(readable), goods), leftOut, goods.size > 0);
  const best = sumOf(content) > MOST * sumOf(all) ? content : all;
  if (sumOf(best) >= LITTLE) return best;
  return readable.length > 0 ? readable : blocks;
}

/** Without what stands around the page's own word for its main part, where that says most. */
function withinMain(blocks: readonly Block[]): readonly Block[] {
  const inside = blocks.filter(({ region }) => isInMain(region));
  return sumOf(inside) > MOST * sumOf(blocks) ? inside : blocks;
}

function isInMain(region: Region): boolean {
  for (let each: Region | undefined = region; each; each = each.parent) {
    if (each.element?.name === 'main' || each.element?.attribs.role === 'main') return true;
  }
  return false;
}

function contentOf(blocks: readonly Block[]) {
  const readable = withoutTerms(
    blocks.filter(({ region }) => !region.isLeftOut),
    blocks,
  );
  const leftOut = blocks.filter(({ region }) => region.isLeftOut);
  const shelves = shelvesOn(blocks);
  const beside = shelves && readable.filter((block) => !thingOf(block, shelves.things));
  if (shelves && beside && isOfShelves(shelves, readable, beside)) {
    const shown = withShelves(blocks, shelves, beside);
    const content = withoutBoilerplate(withinMain(shown), true);
    return { content, goods: shelves.said, leftOut, readable, isOfShelves: true };
  }
  const goods = sumOf(readable.filter(isText)) < MUCH ? goodsOn(blocks) : new Set<Block>();
  const all = withCards(readable, goods);
  const best = bestRegion(all);
  const inside = best === undefined ? all : withTwins(best, all);
  return {
    content: refined(withLead(inside, all), leftOut, goods.size > 0),
    goods,
    leftOut,
    readable,
    isOfShelves: false,
  };
}

/** Whether what is on its shelves is what a page says, and not what can be bought below a text. */
const isOfShelves = (
  { said }: Shelves,
  readable: readonly Block[],
  beside: readonly Block[],
): boolean => sumOf(beside.filter(isText)) < LONG_TEXT && !isBelowText(readable, said);

/** With what stands on shelves, in its place, each a line. */
function withShelves(
  blocks: readonly Block[],
  { said }: Shelves,
  beside: readonly Block[],
): readonly Block[] {
  const besides = new Set(beside);
  return blocks
    .filter((block) => said.has(block) || besides.has(block))
    .map((block) =>
      said.has(block) ? { ...block, kind: 'item', level: 1, linkDensity: 0 } : block,
    );
}

/** Without what stands in it and is not what it says. */
const refined = (
  blocks: readonly Block[],
  leftOut: readonly Block[],
  isShop: boolean,
): readonly Block[] => withoutBoilerplate(withoutPostLabels(blocks, leftOut), isShop);

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
    // A paragraph is a part of something.
    if (region.element?.name === 'p' && region.parent?.element) continue;
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

/**
 * Where a page is made of cards, they are no links but what it says: texts with a heading that are one link. What
 * is short in them are labels.
 */
function withCards(blocks: readonly Block[], goods: ReadonlySet<Block>): readonly Block[] {
  const cards = new Map<Block, boolean>();
  for (let index = 0; index < blocks.length;) {
    const link = onlyLinkOf(blocks[index]);
    let end = index + 1;
    while (link !== undefined && onlyLinkOf(blocks[end]) === link) end++;
    const card = blocks.slice(index, end);
    const isCard =
      card.some(({ kind }) => kind === 'heading') &&
      card.some((block) => block.kind !== 'heading' && !isShort(block));
    if (link !== undefined && isCard) for (const block of card) cards.set(block, isShort(block));
    index = end;
  }
  const beside = blocks.filter(isText);
  const areFew = sumOf([...cards.keys()]) * 2 < sumOf(blocks);
  if ((areFew && sumOf(beside) >= ENOUGH) || isBelowText(blocks, cards)) cards.clear();
  const texts = cards.size > 0 ? cards : linkedTexts(blocks);
  return blocks
    .filter(
      (block) => goods.has(block) || !(cards.get(block) || (goods.size > 0 && isButton(block))),
    )
    .map((block) => {
      if (goods.has(block)) return { ...block, kind: 'item', level: 1, linkDensity: 0 };
      return texts.has(block) ? { ...block, linkDensity: 0 } : block;
    });
}

/**
 * Sentences that are one link each, on a page without cards: what a company offers. One alone calls for something,
 * and below an article they are about others.
 */
function linkedTexts(blocks: readonly Block[]): ReadonlySet<Block> {
  const texts = new Set(
    blocks.filter(
      (block) =>
        block.kind === 'paragraph' &&
        onlyLinkOf(block) !== undefined &&
        weightOf(block.text) >= LONG &&
        SENTENCE_END.test(block.text),
    ),
  );
  return texts.size > 1 && !isBelowText(blocks, texts) ? texts : new Set();
}

/** What can be done with goods, and what they cost. */
const isButton = (block: Block): boolean =>
  block.kind !== 'heading' && weightOf(block.text) < LONG && (isLinks(block) || isOffer(block));

function onlyLinkOf(block: Block | undefined): string | undefined {
  if (!isLinks(block) || block?.links.size !== 1) return undefined;
  const [link] = block.links;
  return link;
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

/** Blocks between a headline and the content that are looked at. */
const MAX_LEAD = 12;

/** With the page's headline, where that stands just above, and the sentences in between: what it is about. */
function withLead(inside: readonly Block[], readable: readonly Block[]): readonly Block[] {
  const [first] = inside;
  if (first === undefined || inside.some(isHeadline)) return inside;
  const start = readable.indexOf(first);
  const above = readable.slice(Math.max(0, start - MAX_LEAD), start);
  const next = above.at(-1);
  const isNext = next?.kind === 'heading' && !isHome(next) && first.kind !== 'heading';
  const at = isNext ? above.length - 1 : above.findLastIndex(isHeadline);
  if (at < 0) return inside;
  const lead = above.slice(at + 1).filter((block) => block.kind === 'paragraph' && !isLinks(block));
  return [...above.slice(at, at + 1), ...lead.filter((block) => !isLabel(block)), ...inside];
}
