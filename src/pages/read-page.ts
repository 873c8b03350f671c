import type { Document } from 'domhandler';
import { blocksOf, type Block } from './blocks.js';
import { decodeText } from './decode-text.js';
import { elementsOf, textOf } from './elements.js';
import { mainContent, mainContentAlone, wordsOfAll } from './main-content.js';
import { markdown, plainText } from './markdown.js';
import {
  descriptionOf,
  headingsOf,
  MAX_TEXT,
  metaValues,
  publicMeta,
  shown,
  titleOf,
} from './page-head.js';
import { factsOf, type PageFacts } from './page-facts.js';
import { baseOf, imagesOf, linksOf, type PageImage, type PageLink } from './page-links.js';
import { parseHtml } from './parse-html.js';
import { countWords, cut } from './plain-text.js';
import { structuredData } from './structured-data.js';

const MAX_PARAGRAPHS = 10;

export interface FetchedPage {
  readonly bytes: Uint8Array;
  readonly contentType: string | undefined;
  /** Final URL of the page. */
  readonly url: string;
}

/** Results of the readings, without the URL and time of the fetch. */
export interface PageReadings {
  summarize: {
    readonly title: string;
    readonly description: string;
    readonly headings: readonly string[];
    readonly paragraphs: readonly string[];
    readonly wordCount: number;
  };
  extract: {
    readonly links: readonly PageLink[];
    readonly images: readonly PageImage[];
    readonly meta: Readonly<Record<string, string>>;
  };
  read: PageFacts & {
    readonly title: string;
    readonly description: string;
    readonly wordCount: number;
    readonly text: string;
    readonly markdown: string;
  };
}

export type Reading = keyof PageReadings;

/** @throws TooComplexError */
export function readPage<R extends Reading>(page: FetchedPage, reading: R): PageReadings[R] {
  return READERS[reading](page);
}

const READERS: { readonly [R in Reading]: (page: FetchedPage) => PageReadings[R] } = {
  summarize(page) {
    const document = documentOf(page);
    const blocks = mainContent(blocksOf(document));
    const content = contentOf(blocks, structuredData(document).articleBody);
    return {
      title: titleOf(document),
      description: descriptionOf(metaValues(document)),
      headings: headingsOf(document),
      paragraphs: content.paragraphs.slice(0, MAX_PARAGRAPHS),
      wordCount: countWords(bodyText(document)),
    };
  },
  extract(page) {
    const document = documentOf(page);
    const base = baseOf(document, page.url);
    return {
      links: linksOf(document, base, page.url),
      images: imagesOf(document, base),
      meta: publicMeta(metaValues(document)),
    };
  },
  read(page) {
    const document = documentOf(page);
    const data = structuredData(document);
    const values = metaValues(document);
    const content = contentOf(mainContentAlone(blocksOf(document)), data.articleBody);
    return {
      title: titleOf(document) || shown(data.headline ?? ''),
      ...factsOf(document, values, data),
      description: descriptionOf(values) || shown(data.description ?? ''),
      wordCount: countWords(content.text),
      text: content.text,
      markdown: content.markdown(baseOf(document, page.url)),
    };
  },
};

const documentOf = ({ bytes, contentType }: FetchedPage) =>
  parseHtml(decodeText(bytes, contentType));

interface Content {
  readonly paragraphs: readonly string[];
  readonly text: string;
  markdown(base: string): string;
}

/** An article in the structured data replaces the visible text if it has more than this times the words. */
const MUCH_MORE = 2;

function contentOf(blocks: readonly Block[], articleBody: string | undefined): Content {
  if (articleBody !== undefined && countWords(articleBody) > MUCH_MORE * wordsOfAll(blocks)) {
    return contentOfText(articleBody);
  }
  return {
    paragraphs: unique(blocks.filter(({ kind }) => kind !== 'heading').map(paragraphOf)),
    text: plainText(blocks),
    markdown: (base) => markdown(blocks, base),
  };
}

/** Reads an article from structured data; some pages put HTML in it. */
function contentOfText(text: string): Content {
  const blocks = blocksOf(parseHtml(text.replaceAll('\0', '').replace(/\n\s*\n/g, '<br><br>')));
  return {
    paragraphs: unique(blocks.map(paragraphOf)),
    text: plainText(blocks),
    markdown: (base) => markdown(blocks, base),
  };
}

const paragraphOf = ({ text }: Block): string => cut(text, MAX_TEXT);

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

function bodyText(document: Document): string {
  for (const element of elementsOf(document)) {
    if (element.name === 'body') return textOf(element, isNotWritten);
  }
  // HTML lets a page omit head and body: its title is still not part of its text.
  return textOf(document, (element) => isNotWritten(element) || element.name === 'title');
}

const NOT_WRITTEN = new Set(['script', 'style', 'template', 'noscript', 'head']);
const isNotWritten = ({ name }: { readonly name: string }): boolean => NOT_WRITTEN.has(name);
