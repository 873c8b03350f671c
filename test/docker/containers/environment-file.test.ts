import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import {
  environmentFile,
  fitsEnvironmentFile,
} from '../../../src/docker/containers/environment-file.js';

test.each([
  'plain',
  'two words = # and "more"',
  ' kept ',
  "it's",
  "it's `both`",
  'ünïcödé $HOME ${HOME} $(id)',
  'two\nlines\n',
  '{"key":"-----BEGIN-----\\nabc\\n"}',
  'C:\\dir\\',
])('a value is written so that it is read back unchanged: %j', (value) => {
  expect(fitsEnvironmentFile(value)).toBe(true);
  const text = environmentFile({ BEFORE: 'x', NAME: value, Z_AFTER: '# y' });
  expect(parseEnv(text)).toEqual({ BEFORE: 'x', NAME: value, Z_AFTER: '# y' });
});

test.each([
  `' and " and \``,
  `' and \` and \\n`,
  `it's \`both\`\r\\n`,
  "it's # \\",
  'nothing\0more',
  'two\nlines\\',
])('a value that no quotes can hold is refused: %j', { tags: 'attack' }, (value) => {
  expect(fitsEnvironmentFile(value)).toBe(false);
  expect(() => environmentFile({ NAME: value })).toThrow(RangeError);
  expect(() => environmentFile({ NAME: value })).not.toThrow(value);
});

test('no value can add another variable', { tags: 'attack' }, () => {
  for (const value of ["'\nEVIL='1", '"\nEVIL="1', '`\nEVIL=`1', 'x\nEVIL=1', "\\'\nEVIL=1"]) {
    expect(parseEnv(environmentFile({ NAME: value }))).toEqual({ NAME: value });
  }
});
