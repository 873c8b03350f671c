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
import { productNamesOn, withoutTerms } from './goods.js';
import { wordsOf } from './boilerplate-elements.js';
import { countWords, weightOf } from './plain-text.js';
import { SENTENCE_END, withoutPostLabels } from './posts.js';
import { type ProductLists, shelvesOn, productOf } from './shelves.js';

/** Minimum number of words for a region to count as the main content. */
export const FEW_WORDS = 100;

/** Letters below which a region may be only a part of the content. */
const ENOUGH = 600;

/** Letters of text from which a page is no product list. */
const MUCH = 1_200;

/** Letters of text from which product lists are secondary to the page's text. */
const LONG_TEXT = 2_500;

/** Share of a page's text that a small region must hold to be its content. */
const MOST = 0.7;

/** Letters below which a result may be empty of content. */
const LITTLE = 180;

/** Punctuation that marks a text as a sentence. */
const SENTENCE = /[.!?…。！？؟۔।།။។;:，、,၊]/;

/** Penalty on a region for each block without content: a link in a list, a label, a button. */
const NOISE = 12;

/**
 * Returns the main content: the blocks of the region with the highest value, without lists of links. Blocks
 * add their text length; links and short fragments subtract. The region around an article therefore scores
 * higher than its single paragraphs and than the whole page with its navigation.
 */
export function mainContent(blocks: readonly Block[]): readonly Block[] {
  const { content, readable } = contentOf(blocks);
  if (wordsOfAll(content) >= FEW_WORDS) return content;
  return readable.length > 0 ? readable : blocks;
}

/** Returns only the main content, or all content if the best region is small, as on a front page. */
export function mainContentAlone(blocks: readonly Block[]): readonly Block[] {
  const { content, goods, isOfShelves, leftOut, readable } = contentOf(blocks);
  if (isOfShelves || sumOf(content) >= ENOUGH) return content;
  const all = refined(withCards(withinMain(readable), goods), leftOut, goods.size > 0);
  const best = sumOf(content) > MOST * sumOf(all) ? content : all;
  if (sumOf(best) >= LITTLE) return best;
  return readable.length > 0 ? readable : blocks;
}

/** Keeps the blocks inside `<main>` or `role="main"` if they hold most of the text. */
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
  const beside = shelves && readable.filter((block) => !productOf(block, shelves.things));
  if (shelves && beside && isOfShelves(shelves, readable, beside)) {
    const shown = withShelves(blocks, shelves, beside);
    const content = withoutBoilerplate(withinMain(shown), true);
    return { content, goods: shelves.said, leftOut, readable, isOfShelves: true };
  }
  const goods = sumOf(readable.filter(isText)) < MUCH ? productNamesOn(blocks) : new Set<Block>();
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

/** Reports whether the product list is the page's content and not an offer below a text. */
const isOfShelves = (
  { said }: ProductLists,
  readable: readonly Block[],
  beside: readonly Block[],
): boolean => sumOf(beside.filter(isText)) < LONG_TEXT && !isBelowText(readable, said);

/** Returns the blocks with each product text as a list item in its place. */
function withShelves(
  blocks: readonly Block[],
  { said }: ProductLists,
  beside: readonly Block[],
): readonly Block[] {
  const besides = new Set(beside);
  return blocks
    .filter((block) => said.has(block) || besides.has(block))
    .map((block) => (said.has(block) ? productLine(block) : block));
}

const productLine = (block: Block): Block => ({
  ...block,
  kind: 'item',
  level: 0,
  linkDensity: 0,
  isProduct: true,
});

/** Removes boilerplate and the labels of posts. */
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
    // A paragraph is always part of a larger region.
    if (region.element?.name === 'p' && region.parent?.element) continue;
    const value = sum * preference(region);
    // Between equal values the deepest region wins: it has less around it.
    if (value > most || (value === most && best && region.depth > best.depth)) {
      best = region;
      most = value;
    }
  }
  return best;
}

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

/** Treats cards (linked texts with a heading) as content, and drops their short texts as labels. */
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
      if (goods.has(block)) return productLine(block);
      return texts.has(block) ? { ...block, linkDensity: 0 } : block;
    });
}

/** Finds sentences of one link each, such as a company's offers: at least two, and not below an article. */
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

/** Reports whether a block is an action on a product or its price. */
const isButton = (block: Block): boolean =>
  block.kind !== 'heading' && weightOf(block.text) < LONG && (isLinks(block) || isOffer(block));

function onlyLinkOf(block: Block | undefined): string | undefined {
  if (!isLinks(block) || block?.links.size !== 1) return undefined;
  const [link] = block.links;
  return link;
}

/** Returns the factor by which the page's own markup favours a region. */
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

/** Returns the blocks of the region and of its siblings with the same classes that hold content. */
function withTwins(best: Region, readable: readonly Block[]): readonly Block[] {
  const values = new Map<Region, number>();
  for (const block of readable) {
    const beside = twinAround(block, best);
    if (beside) values.set(beside, (values.get(beside) ?? 0) + valueOf(block));
  }
  const inside = readable.filter((block) => isIn(block, best));
  // A short region among similar ones is a teaser, and so are its siblings.
  if (wordsOfAll(inside) < FEW_WORDS) return inside;
  return readable.filter((block) => {
    const beside = twinAround(block, best);
    return isIn(block, best) || (beside !== undefined && (values.get(beside) ?? 0) > 0);
  });
}

/** Finds the region around a block that is a sibling of `best` with the same element and classes. */
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

/** Maximum number of blocks between a headline and the content that are examined. */
const MAX_LEAD = 12;

/** Prepends the page's headline, if it stands just above, and the sentences between it and the content. */
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
