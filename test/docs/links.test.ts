import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

const pagesIn = (folder: string) =>
  readdirSync(path.join(projectRoot, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => path.join(folder, file));

const PAGES = [...pagesIn('.'), ...pagesIn('docs')];

const read = (page: string) => readFileSync(path.join(projectRoot, page), 'utf8');

/** Returns the anchor of a heading on code hosts. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

const anchorsOf = (page: string) =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));

describe.each(PAGES)('%s', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)];

  test('links only to existing pages and headings', () => {
    const dead = links.filter(([, target = '', anchor]) => {
      const linked = target === '' ? page : path.join(path.dirname(page), target);
      if (!existsSync(path.join(projectRoot, linked))) return true;
      return anchor !== undefined && !anchorsOf(linked).includes(anchor);
    });
    expect(dead.map(([link]) => link)).toEqual([]);
  });

  test('the README links to the page', () => {
    if (page !== 'README.md') expect(read('README.md')).toContain(`(${page}`);
  });

  test('names only existing files of the tree', () => {
    const files = [
      ...read(page).matchAll(
        /`((?:src|api|workflows|activities|temporal|worker|scripts|dev|test|bench)\/[\w./-]+\.ts)`/g,
      ),
    ];
    expect(
      files
        .map(([, file = '']) => file)
        .filter((file) => !existsSync(path.join(projectRoot, file))),
    ).toEqual([]);
  });
});
