import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { filesBelow } from '../../dev/files-below.js';
import { projectRoot } from '../../dev/root.js';
import { API_PAGE, withErrorCodes } from '../../scripts/error-codes-section.js';
import { ERROR_CODES } from '../../src/lib/error-codes.js';

test('npm run docs:codes lists all error codes in docs/api.md', () => {
  const page = readFileSync(API_PAGE, 'utf8');
  expect(withErrorCodes(page)).toBe(page);
});

test('every error code is sent somewhere', async () => {
  const files = await Promise.all(
    ['api', 'src', 'temporal'].map((folder) => filesBelow(path.join(projectRoot, folder))),
  );
  const sources = files
    .flat()
    .filter(({ name }) => name.endsWith('.ts') && name !== 'error-codes.ts')
    .map((file) => readFileSync(path.join(file.parentPath, file.name), 'utf8'))
    .join('\n');
  const unused = Object.keys(ERROR_CODES).filter((code) => !sources.includes(`'${code}'`));
  expect(unused).toEqual([]);
});

test('error codes are in alphabetical order', () => {
  const codes = Object.keys(ERROR_CODES);
  const inOrder = codes.toSorted((a, b) => a.toLowerCase().localeCompare(b.toLowerCase(), 'en'));
  expect(codes).toEqual(inOrder);
});
