import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { findProgram } from '../../dev/processes/find-program.js';
import { projectRoot } from '../../dev/root.js';
import type { GivenPage, PageReader, ReadPage } from '../support/pages/labelled-page.js';
import { AgainstMissing, installedOnce, npmInstall, pipInstall } from './install.js';
import { plainTextOf } from './labelled-pages.js';

const PACKAGES = {
  '@mozilla/readability': '0.6.0',
  linkedom: '0.18.15',
  jsdom: '29.1.1',
  defuddle: '0.19.4',
  '@extractus/article-extractor': '9.0.1',
  metascraper: '5.49.24',
  'metascraper-title': '5.49.24',
  'metascraper-description': '5.49.24',
  'metascraper-image': '5.49.24',
  'metascraper-lang': '5.49.24',
};
/** Includes a dependency on lxml that trafilatura does not declare. */
const PYTHON_PACKAGES = ['trafilatura==2.3.1', 'lxml_html_clean==0.4.6'];

/**
 * Returns the readers from npm.
 *
 * @throws AgainstMissing
 */
export async function npmReaders(cacheDir: string): Promise<PageReader[]> {
  const packages = Object.entries(PACKAGES).map(([name, version]) => `${name}@${version}`);
  const key = packages.map((each) => each.replace(/\D/g, '')).join('-');
  const folder = await installedOnce(
    cacheDir,
    `page-readers-${key}`,
    'Installing Readability, defuddle and others',
    (fresh) => npmInstall('Readability', fresh, packages),
  );
  const { resolve } = createRequire(path.join(folder, 'package.json'));
  const load = async (name: keyof typeof PACKAGES) => import(pathToFileURL(resolve(name)).href);
  const { Readability } = await load('@mozilla/readability');
  const { parseHTML } = await load('linkedom');
  const { JSDOM, VirtualConsole } = await load('jsdom');
  const defuddleFile = path.join(folder, 'node_modules', 'defuddle', 'dist', 'node.js');
  const { Defuddle } = await import(pathToFileURL(defuddleFile).href);
  const { extractFromHtml } = await load('@extractus/article-extractor');
  const { default: metascraper } = await load('metascraper');
  const rules = await Promise.all(
    (
      [
        'metascraper-title',
        'metascraper-description',
        'metascraper-image',
        'metascraper-lang',
      ] as const
    ).map(async (name) => (await load(name)).default()),
  );
  const metadata = metascraper(rules);
  const readable = (document: unknown): ReadPage => {
    const found = new Readability(document).parse();
    return {
      text: plainTextOf(found?.content ?? ''),
      title: found?.title,
      description: found?.excerpt,
      language: found?.lang ?? undefined,
    };
  };
  return [
    oneByOne('Readability, linkedom', ({ html }) => readable(parseHTML(html).document)),
    oneByOne('Readability, jsdom', ({ html, url }) => {
      const dom = new JSDOM(html, { url, virtualConsole: new VirtualConsole() });
      const read = readable(dom.window.document);
      dom.window.close();
      return read;
    }),
    oneByOne('defuddle', async ({ html, url }) => {
      const { content, description, image, language, title } = await Defuddle(
        parseHTML(html).document,
        url,
        // Otherwise defuddle requests missing content from services on the internet.
        { useAsync: false },
      );
      return { text: plainTextOf(content ?? ''), title, description, language, image };
    }),
    oneByOne('article-extractor', async ({ html, url }) => {
      const found = await extractFromHtml(html, url);
      const { content, description, image, title } = found ?? {};
      return { text: plainTextOf(content ?? ''), title, description, image };
    }),
    oneByOne('metascraper', async ({ html, url }) => {
      const { description, image, lang, title } = await metadata({ html, url });
      return { title, description, image, language: lang };
    }),
  ];
}

/** Creates a reader of single pages; a failure counts as an empty result. */
function oneByOne(
  name: string,
  read: (page: GivenPage) => Promise<ReadPage> | ReadPage,
): PageReader {
  return {
    name,
    async readAll(pages) {
      const all: ReadPage[] = [];
      for (const page of pages) {
        try {
          all.push(await read(page));
        } catch {
          all.push(name === 'metascraper' ? {} : { text: '' });
        }
      }
      return all;
    },
  };
}

/**
 * Returns trafilatura, in one process for all pages.
 *
 * @throws AgainstMissing
 */
export async function trafilaturaReader(cacheDir: string): Promise<PageReader> {
  const python = (await findProgram('python3')) ?? (await findProgram('python'));
  if (python === undefined)
    throw new AgainstMissing('trafilatura needs Python, which is not here.');
  const folder = await installedOnce(
    cacheDir,
    PYTHON_PACKAGES.join('-').replaceAll('==', '-'),
    'Installing trafilatura',
    (fresh) => pipInstall('trafilatura', python, fresh, PYTHON_PACKAGES),
  );
  const program = path.join(projectRoot, 'bench', 'against', 'trafilatura_read.py');
  return {
    name: 'trafilatura',
    async readAll(pages) {
      const child = spawn(python, [program], {
        env: { ...process.env, PYTHONPATH: folder, PYTHONIOENCODING: 'utf-8' },
        stdio: ['pipe', 'pipe', 'ignore'],
      });
      const ended = once(child, 'close');
      const write = async () => {
        for (const { html, url } of pages) {
          if (!child.stdin.write(`${JSON.stringify({ html, url })}\n`))
            await once(child.stdin, 'drain');
        }
        child.stdin.end();
      };
      const writing = write();
      const all: ReadPage[] = [];
      for await (const line of createInterface(child.stdout)) {
        const { description, image, language, text, title } = JSON.parse(line);
        all.push({
          text: text ?? '',
          ...(title && { title }),
          ...(description && { description }),
          ...(language && { language }),
          ...(image && { image }),
        });
      }
      await Promise.all([writing, ended]);
      if (all.length !== pages.length) throw new AgainstMissing('trafilatura broke off.');
      return all;
    },
  };
}
