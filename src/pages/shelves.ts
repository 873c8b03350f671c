import type { Block, Region } from './blocks.js';
import { isOfOne, isPrice } from './goods.js';
import { isHidden } from './boilerplate-elements.js';

/** Minimum number of similar products side by side for a product list; fewer may be recommendations. */
const MANY = 8;

/** Minimum share of the products that have a price: some are sold out. */
const MOST = 0.7;

/** Maximum number of elements between a price or link and the element of its product. */
const DEEP = 12;

export interface ProductLists {
  readonly things: ReadonlySet<Region>;
  /** The blocks that describe the products. */
  readonly said: ReadonlySet<Block>;
}

/**
 * Finds the product lists of a page: eight or more similar siblings, each with a link and most with a price.
 * Returns undefined if the page's own headline has a price, as on a product page.
 * @param blocks all blocks of the page, since content blocks exclude prices.
 */
export function shelvesOn(blocks: readonly Block[]): ProductLists | undefined {
  const things = thingsOn(blocks);
  if (things.size === 0) return undefined;
  const onShelves = new Map<Region, Block[]>();
  const beside: Block[] = [];
  for (const block of blocks) {
    const thing = productOf(block, things);
    if (thing === undefined) {
      beside.push(block);
      continue;
    }
    const blocksOf = onShelves.get(thing) ?? [];
    blocksOf.push(block);
    onShelves.set(thing, blocksOf);
  }
  if (isOfOne(beside)) return undefined;
  return { things, said: saidOf(onShelves, things) };
}

function thingsOn(blocks: readonly Block[]): ReadonlySet<Region> {
  const prices = blocks.filter(isPrice);
  // Most pages end here at little cost.
  if (prices.length < MOST * MANY) return new Set();
  const priced = new Set<Region>();
  for (const block of prices) addAround(block, priced);
  const linked = new Set<Region>();
  for (const block of blocks) if (block.links.size > 0) addAround(block, linked);
  const groups = new Map<Region, Map<string, Region[]>>();
  for (const region of linked) {
    if (region.parent === undefined || region.isLeftOut) continue;
    const beside = groups.get(region.parent) ?? new Map<string, Region[]>();
    const name = nameOf(region);
    const group = beside.get(name) ?? [];
    group.push(region);
    beside.set(name, group);
    groups.set(region.parent, beside);
  }
  const things = new Set<Region>();
  for (const group of [...groups.values()].flatMap((beside) => [...beside.values()])) {
    const sold = group.filter((region) => priced.has(region));
    if (group.length < MANY || sold.length < MOST * group.length) continue;
    for (const region of group) things.add(region);
  }
  return things;
}

function addAround({ region }: Block, regions: Set<Region>): void {
  let deep = 0;
  for (let each: Region | undefined = region; each && deep < DEEP; each = each.parent) {
    if (regions.has(each)) return;
    regions.add(each);
    deep++;
  }
}

/** Returns the innermost product that contains a block. */
export function productOf({ region }: Block, things: ReadonlySet<Region>): Region | undefined {
  let each: Region | undefined = region;
  while (each && !things.has(each)) each = each.parent;
  return each;
}

/** Returns the distinct texts of each product, without hidden blocks and action buttons. */
function saidOf(
  onShelves: ReadonlyMap<Region, readonly Block[]>,
  things: ReadonlySet<Region>,
): ReadonlySet<Block> {
  const counts = new Map<string, number>();
  const said: Block[] = [];
  for (const blocks of onShelves.values()) {
    const texts = new Set<string>();
    for (const block of blocks) {
      if (texts.has(block.text) || isHiddenIn(block, things)) continue;
      texts.add(block.text);
      said.push(block);
    }
    for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const isButton = ({ linkDensity, region, text }: Block): boolean =>
    (linkDensity >= 0.6 || region.isLeftOut) && (counts.get(text) ?? 0) * 2 >= onShelves.size;
  return new Set(said.filter((block) => isPrice(block) || !isButton(block)));
}

function isHiddenIn({ region }: Block, things: ReadonlySet<Region>): boolean {
  for (
    let each: Region | undefined = region;
    each?.element && !things.has(each);
    each = each.parent
  ) {
    if (isHidden(each.element)) return true;
  }
  return false;
}

/** Returns the tag and first class name; later ones may only be "last" or "on sale". */
const nameOf = ({ element }: Region): string =>
  `${element?.name} ${element?.attribs.class?.trim().split(/\s/, 1)[0] ?? ''}`;
