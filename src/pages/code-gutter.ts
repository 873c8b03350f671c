import { type Element, isTag } from 'domhandler';
import { count } from './boilerplate-elements.js';
import { isOfNumbers } from './elements.js';

/** Class names for the numbers of lines. */
const GUTTER =
  /(?:^|[\s_-])(?:line-?(?:nos?|nr|num(?:ber)?s?)|lnum|lnt?|blob-num|gutter)(?=$|[\s_-])/i;

/** Reports whether an element holds only numbers of the lines of code. */
export function isGutter(element: Element, isInCode: boolean): boolean {
  const { attribs, name } = element;
  const isCell = name === 'td' || name === 'th';
  if (!isInCode && !isCell && name !== 'pre') return false;
  const isNamed = GUTTER.test(attribs.class ?? '');
  if (!isNamed && !isCell && name !== 'pre') return false;
  return isOfNumbers(element) && (isNamed || isBesideCode(element, isInCode));
}

/** Reports whether the next cell of the row holds code. */
function isBesideCode(element: Element, isInCode: boolean): boolean {
  let cell: Element | undefined = element;
  while (cell && cell.name !== 'td' && cell.name !== 'th') {
    cell = cell.parent && isTag(cell.parent) ? cell.parent : undefined;
  }
  let next = cell?.next;
  while (next && !isTag(next)) next = next.next;
  if (!next) return false;
  return isInCode || count(next, ({ name }) => name === 'pre', 1) > 0;
}
