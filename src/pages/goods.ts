import type { Block, Region } from './blocks.js';
import { weightOf } from './plain-text.js';

const AMOUNT = /\p{Sc}\s?\p{Nd}|\p{Nd}\s?(?:\p{Sc}|[円元원])/u;

/** Minimum number of goods on a shop's page; fewer may be suggestions beside another product. */
const MANY = 4;

/** Blocks below a headline in which its price is searched. */
const NEAR = 12;

/** Maximum number of letters of a product's name, and of a price. */
const NAME = 120;
const PRICE = 80;

export const isPrice = ({ text }: Block): boolean =>
  text.length < PRICE && AMOUNT.test(text) && weightOf(text) < PRICE;

/** Maximum number of elements from a price outwards to the one that contains the name. */
const DEEP = 4;

/**
 * Returns the product names on a page that sells many, such as a shop's front page: links with a price
 * nearby. Returns an empty set if the page's own headline has a price, because the rest are suggestions.
 * @param blocks all blocks of the page, including those removed from its content.
 */
export function productNamesOn(blocks: readonly Block[]): ReadonlySet<Block> {
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

/** Reports whether the headline, of level `level` at most, has a price. */
export const isOfOne = (blocks: readonly Block[], level = 1): boolean =>
  blocks.some(
    (block, index) =>
      isOwnHeading(block) &&
      block.level <= level &&
      isPriced(blocks.slice(index + 1, index + 1 + NEAR)),
  );

const isOwnHeading = ({ kind, linkDensity }: Block): boolean =>
  kind === 'heading' && linkDensity < 0.5;

/** Reports whether a price comes before the next heading. */
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

/** Maximum number of letters of a section's heading. */
const HEAD = 60;

/** Headings that a shop repeats for all goods; the structure does not distinguish their sections. */
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
    // Scripts without spaces between words match anywhere.
    .map((word) => (/^\p{Script=Latin}/u.test(word) ? `(?<!\\p{L})${word}` : word))
    .join('|'),
  'iu',
);

/**
 * Removes the shop's general terms from a product page. Keeps them if they are half of the content, because
 * they are then the page's purpose.
 * @param all all blocks of the page, including those removed from its content.
 */
export function withoutTerms(blocks: readonly Block[], all: readonly Block[]): readonly Block[] {
  // Some product pages have only a second-level heading above the product.
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

/** Reports whether the block is a heading or the term of a definition list. */
const isHead = ({ kind, region }: Block): boolean =>
  kind === 'heading' || region.element?.name === 'dt';

const isOfTerms = ({ text }: Block): boolean => weightOf(text) <= HEAD && TERMS.test(text);

const isBelow = ({ region }: Block, head: Block): boolean =>
  region.element?.name === 'dd' && region.parent === head.region.parent;
