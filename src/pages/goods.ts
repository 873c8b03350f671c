import type { Block, Region } from './blocks.js';
import { weightOf } from './plain-text.js';

/** In money. */
const AMOUNT = /\p{Sc}\s?\p{Nd}|\p{Nd}\s?(?:\p{Sc}|[円元원])/u;

/** Fewer things may be what else there is to buy. */
const MANY = 4;

/** Blocks below a headline that tell what it costs. */
const NEAR = 12;

/** Letters of what something is called, and of what it costs, at most. */
const NAME = 120;
const PRICE = 80;

/** What something costs, in a few words. */
export const isPrice = ({ text }: Block): boolean =>
  text.length < PRICE && AMOUNT.test(text) && weightOf(text) < PRICE;

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
  if (isOfOne(blocks)) return goods;
  const names = new Map<Region, Block>();
  for (const block of blocks) {
    if (isName(block)) {
      let deep = 0;
      for (let each: Region | undefined = block.region; each && deep < DEEP; each = each.parent) {
        if (lettersOf(names.get(each)) < lettersOf(block)) names.set(each, block);
        deep++;
      }
    } else if (isPrice(block)) {
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

/** Whether the page's own headline has a price. @param level of headings that may be it, at most. */
export const isOfOne = (blocks: readonly Block[], level = 1): boolean =>
  blocks.some(
    (block, index) =>
      isOwnHeading(block) &&
      block.level <= level &&
      isPriced(blocks.slice(index + 1, index + 1 + NEAR)),
  );

/** It leads nowhere else. */
const isOwnHeading = ({ kind, linkDensity }: Block): boolean =>
  kind === 'heading' && linkDensity < 0.5;

/** Whether it costs something, before the next heading. */
function isPriced(blocks: readonly Block[]): boolean {
  const next = blocks.findIndex(isOwnHeading);
  return blocks
    .slice(0, next < 0 ? blocks.length : next)
    .some((block) => block.linkDensity < 0.5 && isPrice(block));
}

const isName = ({ linkDensity, links, region, text }: Block): boolean =>
  linkDensity >= 0.6 &&
  links.size === 1 &&
  !region.isLeftOut &&
  !AMOUNT.test(text) &&
  weightOf(text) < NAME;

/** Letters of what heads a part, at most. */
const HEAD = 60;

/**
 * Under what heads a part in which a shop says what it says of all its goods: delivery, return, warranty, payment.
 * Beginnings of words; nothing in a page's structure tells such a part from what is said of the one thing.
 */
const TERMS = new RegExp(
  `
    shipping deliver dispatch return refund warrant guarantee payment
    versand lieferung rückgabe widerruf garanti gewährleistung zahlung
    livraison expédition retour paiement envío envio entrega devoluci devoluç pagos
    spedizion garanzi pagament verzend bezorg leverans levering frakt
    wysyłk dostaw zwrot gwarancj płatno доставк возврат гаранти оплат
    الشحن التوصيل الإرجاع الضمان الدفع จัดส่ง คืนสินค้า รับประกัน
    配送 送料 返品 お届け お支払 发货 运费 退货 退款 售后 運費 退換 배송 반품 교환 환불 적립
  `
    .trim()
    .split(/\s+/)
    // Where words are not apart, they begin anywhere.
    .map((word) => (/^\p{Script=Latin}/u.test(word) ? `(?<!\\p{L})${word}` : word))
    .join('|'),
  'iu',
);

/**
 * Without what a shop says of all its goods, on the page of one of them. Not where that is half of it: then it is
 * what the page is for.
 *
 * @param all of the page, also what is left out of its content.
 */
export function withoutTerms(blocks: readonly Block[], all: readonly Block[]): readonly Block[] {
  // Some have no more than a part's heading over what they sell.
  if (!isOfOne(all, 2)) return blocks;
  const terms = new Set<Block>();
  let head: Block | undefined;
  for (const block of blocks) {
    if (isHead(block)) head = isOfTerms(block) ? block : undefined;
    else if (head && head.kind !== 'heading' && !isBelow(block, head)) head = undefined;
    if (head) terms.add(block);
  }
  const sum = (some: Iterable<Block>) =>
    [...some].reduce((total, { text }) => total + weightOf(text), 0);
  return sum(terms) * 2 < sum(blocks) ? blocks.filter((block) => !terms.has(block)) : blocks;
}

/** A heading, or what stands for one: a term of a list. */
const isHead = ({ kind, region }: Block): boolean =>
  kind === 'heading' || region.element?.name === 'dt';

const isOfTerms = ({ text }: Block): boolean => weightOf(text) <= HEAD && TERMS.test(text);

const isBelow = ({ region }: Block, head: Block): boolean =>
  region.element?.name === 'dd' && region.parent === head.region.parent;
