import { expect, test } from 'vitest';
import { ownPages } from '../../bench/support/pages/own-pages.js';
import { blocksOf, type Block } from '../../src/pages/blocks.js';
import { mainContentAlone } from '../../src/pages/main-content.js';
import { markdown } from '../../src/pages/markdown.js';
import { parseHtml } from '../../src/pages/parse-html.js';
import { holdMarkdown } from './markdown-rounds.js';
import { ofCommonMark, ofGfm } from './parsed-markdown.js';
import type { Part } from './random-page.js';

test('two parsers read 10,000 random pages back from their Markdown', () => {
  holdMarkdown(1_000, 10_000);
});

test.each(['seen', 'unseen', 'unseen-3'] as const)(
  'two parsers read the blocks of each labelled page of the set %s back from its Markdown',
  async (set) => {
    for (const { bytes, name, url } of await ownPages(set)) {
      const blocks = mainContentAlone(blocksOf(parseHtml(Buffer.from(bytes).toString())));
      const written = markdown(blocks, url);
      const wanted = blocks.map(lineOf);
      expect(linesOf(ofGfm(written).parts), name).toEqual(wanted);
      if (blocks.some(({ kind }) => kind === 'row')) continue;
      expect(linesOf(ofCommonMark(written).parts), name).toEqual(wanted);
    }
  },
);

/** Returns the kind and text of a block. */
function lineOf({ kind, level, text }: Block): string {
  if (kind === 'heading') return `${level} ${text}`;
  return kind === 'code' ? `code ${text}` : text.replace(/(?: ?\| )+| ?\|$/g, ' ').trim();
}

function linesOf(parts: readonly Part[]): readonly string[] {
  return parts.flatMap((part) => {
    switch (part.kind) {
      case 'heading':
        return [`${part.level} ${part.text}`];
      case 'code':
        return [`code ${part.text}`];
      case 'paragraph':
        return [part.text.replace(/(?: ?\| )+| ?\|$/g, ' ').trim()];
      case 'table':
        return part.rows.map((cells) =>
          cells
            .join(' | ')
            .replace(/(?: ?\| )+| ?\|$/g, ' ')
            .trim(),
        );
      case 'quote':
        return linesOf(part.parts);
      case 'list':
        return part.items.flatMap(linesOf);
    }
  });
}
