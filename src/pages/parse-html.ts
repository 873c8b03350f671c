import { DomHandler, Element, type Document } from 'domhandler';
import { Parser } from 'htmlparser2';
import { TooComplexError } from './page-error.js';

/** Elements below which others are put beside, not into: as deep as browsers go. */
const MAX_DEPTH = 512;

/** Open at a time. The parser looks through all of them at each end of one. */
const MAX_OPEN = 10_000;

const MAX_NODES = 500_000;

/**
 * Reads a page as a tree that is never deeper than 512, so that whoever walks it may call themselves.
 *
 * @throws TooComplexError for more than 500,000 nodes, or 10,000 elements that are open at a time.
 */
export function parseHtml(text: string): Document {
  const tree = treeOf(text);
  // To HTML it is a comment that ends with the next `>`, to the parser all up to `]]>`.
  return tree.hasSections ? treeOf(text.replaceAll(SECTION, '<!CDATA[')).root : tree.root;
}

const SECTION = '<![CDATA[';

function treeOf(text: string): BoundedTree {
  const tree = new BoundedTree();
  new Parser(tree, { lowerCaseTags: true, decodeEntities: true }).end(text);
  return tree;
}

class BoundedTree extends DomHandler {
  /** Whether it holds sections of CDATA. */
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

  /** Nobody reads them. */
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
