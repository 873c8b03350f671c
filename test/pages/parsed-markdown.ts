import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { type Part, withoutEmptyEnd } from './random-page.js';

type Root = ReturnType<typeof fromMarkdown>;
type Node = Root | Root['children'][number];

/** Returns the parts and links of Markdown, as a parser of CommonMark reads it. */
export const ofCommonMark = (markdown: string) => readingOf(fromMarkdown(markdown));

/** Returns the parts and links of Markdown, as a parser of GitHub Flavored Markdown reads it. */
export const ofGfm = (markdown: string) =>
  readingOf(fromMarkdown(markdown, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }));

function readingOf(root: Root) {
  const links: string[] = [];
  return { parts: root.children.map(partOf), links };

  function partOf(node: Node): Part {
    switch (node.type) {
      case 'heading':
        return { kind: 'heading', level: node.depth, text: textOf(node) };
      case 'paragraph':
        return { kind: 'paragraph', text: textOf(node) };
      case 'code':
        return { kind: 'code', text: node.value };
      case 'blockquote':
        return { kind: 'quote', parts: node.children.map(partOf) };
      case 'list': {
        const start = node.ordered ? (node.start ?? undefined) : undefined;
        const items = node.children.map(({ children }) => children.map(partOf));
        return { kind: 'list', start, items };
      }
      case 'table': {
        const rows = node.children.map(({ children }) => withoutEmptyEnd(children.map(textOf)));
        return { kind: 'table', rows };
      }
      default:
        throw new Error(`The Markdown has a part of the type ${node.type}`);
    }
  }

  function textOf(node: Node): string {
    if (node.type === 'text' || node.type === 'inlineCode') return node.value;
    if (node.type === 'link') links.push(node.url);
    const isKnown = ['link', 'strong', 'emphasis', 'paragraph', 'heading', 'tableCell'].includes(
      node.type,
    );
    if (!isKnown || !('children' in node)) throw new Error(`The text has a ${node.type}`);
    return node.children.map(textOf).join('');
  }
}
