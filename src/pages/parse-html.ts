import { DomHandler, Element, type Document } from 'domhandler';
import { Parser } from 'htmlparser2';
import { TooComplexError } from './page-error.js';

/** Deepest nesting of elements, as in browsers; deeper ones become siblings. */
const MAX_DEPTH = 512;

/** Most elements open at a time. The parser scans all of them at each closing tag. */
const MAX_OPEN = 10_000;

const MAX_NODES = 500_000;

/**
 * Parses a page into a tree at most 512 deep, so that recursion over it is safe.
 * @throws TooComplexError for more than 500,000 nodes, or 10,000 elements that are open at a time.
 */
export function parseHtml(text: string): Document {
  const tree = treeOf(text);
  // HTML ends a CDATA section at the next `>`, as a bogus comment; the parser ends it at `]]>`.
  return tree.hasSections ? treeOf(text.replaceAll(SECTION, '<!CDATA[')).root : tree.root;
}

const SECTION = '<![CDATA[';

function treeOf(text: string): BoundedTree {
  const tree = new BoundedTree();
  new Parser(tree, { lowerCaseTags: true, decodeEntities: true }).end(text);
  return tree;
}

class BoundedTree extends DomHandler {
  /** True if the page holds CDATA sections. */
  hasSections = false;
  #deeper = 0;
  #nodes = 0;

  override onopentag(name: string, attributes: Record<string, string>): void {
    if (this.tagStack.length <= MAX_DEPTH) return super.onopentag(name, attributes);
    if (++this.#deeper > MAX_OPEN) throw new TooComplexError();
    this.addNode(new Element(name, attributes));
  }

  override onclosetag(): void {
    if (this.#deeper === 0) return super.onclosetag();
    this.#deeper--;
    this.lastNode = null;
  }

  /** Comments are not stored: nothing reads them. */
  override oncomment(text: string): void {
    this.hasSections ||= text.startsWith('[CDATA[');
  }
  override oncommentend(): void {}
  override onprocessinginstruction(): void {}

  override addNode(node: Parameters<DomHandler['addNode']>[0]): void {
    if (++this.#nodes > MAX_NODES) throw new TooComplexError();
    super.addNode(node);
  }
}
