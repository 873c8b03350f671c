import type { Block, Region } from './blocks.js';
import { weightOf } from './plain-text.js';

/** In money. */
export const AMOUNT = /\p{Sc}\s?\p{Nd}|\p{Nd}\s?(?:\p{Sc}|[円元원])/u;

/** Fewer things may be what else there is to buy. */
const MANY = 4;

/** Blocks below a headline that tell what it costs. */
const NEAR = 12;

/** Letters of what something is called, and of what it costs, at most. */
const NAME = 120;
const PRICE = 80;

/** Elements around a price up to the one with the name in it. */
const DEEP = 4;

/**
 * What things are called on a page that sells many of them, such as the front page of a shop: links with a price
 * beside them. None on a page whose own headline has a price: there they are what else there is to buy.
 *
 * @param blocks all of the page, also what is left out of its content.
 */
export function goodsOn(blocks: readonly Block[]): ReadonlySet<Block> {
  const goods = new Set<Block>();
  const names = new Map<Region, Block>();
  for (const [index, block] of blocks.entries()) {
    if (isHeadline(block) && isPriced(blocks.slice(index + 1, index + 1 + NEAR))) return new Set();
    if (isName(block)) {
      let deep = 0;
      for (let each: Region | undefined = block.region; each && deep < DEEP; each = each.parent) {
        if (lettersOf(names.get(each)) < lettersOf(block)) names.set(each, block);
        deep++;
      }
    } else if (AMOUNT.test(block.text) && weightOf(block.text) < PRICE) {
      let deep = 0;
      for (let each: Region | undefined = block.region; each && deep < DEEP; each = each.parent) {
        const name = names.get(each);
        if (name !== undefined) {
          goods.add(name);
          break;
        }
        deep++;
      }
    }
  }
  return goods.size >= MANY ? goods : new Set();
}

const lettersOf = (block: Block | undefined): number => block?.text.length ?? 0;

const isHeadline = ({ kind, level, linkDensity }: Block): boolean =>
  kind === 'heading' && level === 1 && linkDensity < 0.5;

/** Whether it costs something, before the next heading. */
function isPriced(blocks: readonly Block[]): boolean {
  const next = blocks.findIndex(({ kind, linkDensity }) => kind === 'heading' && linkDensity < 0.5);
  return blocks
    .slice(0, next < 0 ? blocks.length : next)
    .some(
      ({ linkDensity, text }) => linkDensity < 0.5 && AMOUNT.test(text) && weightOf(text) < PRICE,
    );
}

const isName = ({ linkDensity, links, region, text }: Block): boolean =>
  linkDensity >= 0.6 &&
  links.size === 1 &&
  !region.isLeftOut &&
  !AMOUNT.test(text) &&
  weightOf(text) < NAME;
