import { DomHandler, Element, isTag, isText, type Document, type Text } from 'domhandler';
import { Parser } from 'htmlparser2';
import { TooComplexError } from './page-error.js';

/** Deepest nesting of elements, as in browsers; deeper ones become siblings. */
const MAX_DEPTH = 512;

/** Maximum number of elements open at a time. The parser scans all of them at each closing tag. */
const MAX_OPEN = 10_000;

const MAX_NODES = 500_000;

/**
 * Parses a page into a tree at most 512 deep, so that recursion over it is safe.
 * @throws TooComplexError for more than 500,000 nodes, or 10,000 elements that are open at a time.
 */
export function parseHtml(text: string): Document {
  const tree = treeOf(text);
  if (!tree.isMisread) return tree.root;
  // HTML ends a CDATA section at the next `>`, as a bogus comment; the parser ends it at `]]>`.
  // HTML ends a comment at `--!>`, too.
  return treeOf(text.replaceAll(SECTION, '<!CDATA[').replaceAll(COMMENT_END, '-->')).root;
}

const SECTION = '<![CDATA[';
const COMMENT_END = '--!>';

function treeOf(text: string): BoundedTree {
  const tree = new BoundedTree();
  new Parser(tree, { lowerCaseTags: true, decodeEntities: true }).end(text);
  return tree;
}

class BoundedTree extends DomHandler {
  /** True if the page has a CDATA section or comment whose end the parser does not find. */
  isMisread = false;
  #deeper = 0;
  #nodes = 0;

  override onopentag(name: string, attributes: Record<string, string>): void {
    if (this.tagStack.length <= MAX_DEPTH) return super.onopentag(name, attributes);
    if (++this.#deeper > MAX_OPEN) throw new TooComplexError();
    this.addNode(new Element(name, attributes));
  }

  override onclosetag(): void {
    if (this.#deeper === 0) {
      const closed = this.tagStack.at(-1);
      if (closed && isTag(closed) && closed.name === 'rt') bracket(closed);
      return super.onclosetag();
    }
    this.#deeper--;
    this.lastNode = null;
  }

  /** Comments are not stored: nothing reads them. */
  override oncomment(text: string): void {
    this.isMisread ||= text.startsWith('[CDATA[') || text.includes(COMMENT_END);
  }
  override oncommentend(): void {}
  override onprocessinginstruction(): void {}

  override addNode(node: Parameters<DomHandler['addNode']>[0]): void {
    if (++this.#nodes > MAX_NODES) throw new TooComplexError();
    super.addNode(node);
  }
}

/** Puts brackets around the reading of a word, unless the page has them in `<rp>`. */
function bracket(reading: Element): void {
  const texts = textsIn(reading);
  const [first, last] = [texts[0], texts.at(-1)];
  if (!first || !last) return;
  let before = reading.prev;
  while (before && isText(before) && before.data.trim() === '') before = before.prev;
  if (before && isTag(before) && before.name === 'rp' && textsIn(before).length > 0) return;
  first.data = `(${first.data}`;
  last.data += ')';
}

/** Returns the texts in an element other than white space. Recursive, because the tree's depth is bounded. */
const textsIn = ({ children }: Element): Text[] =>
  children.flatMap((child) => {
    if (isTag(child)) return textsIn(child);
    return isText(child) && child.data.trim() !== '' ? [child] : [];
  });
