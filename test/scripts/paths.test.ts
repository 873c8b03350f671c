import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { projectRoot } from '../../dev/root.js';

const read = (file: string) => readFileSync(path.join(projectRoot, file), 'utf8');

const ROOMS = ['src', 'api', 'workflows', 'activities', 'temporal', 'worker'];
const WORKSHOP = ['dev', 'scripts', 'bench', 'test'];
const files = [...ROOMS, ...WORKSHOP].flatMap((room) =>
  readdirSync(path.join(projectRoot, room), { recursive: true, encoding: 'utf8' }).map((file) =>
    path.join(room, file),
  ),
);

/** Expands an expression with `(a|b)` or `{a,b}` into all its texts. */
function alternatives(text: string): string[] {
  const group = /\(([^()]*)\)|\{([^{}]*)\}/.exec(text);
  if (!group) return [text];
  const [whole, bar, comma] = group;
  const each = bar?.split('|') ?? comma?.split(',') ?? [];
  const [before, after] = [text.slice(0, group.index), text.slice(group.index + whole.length)];
  return each.flatMap((one) => alternatives(`${before}${one}${after}`));
}

describe('a rule on a path that no longer exists matches nothing and fails', () => {
  test('.dependency-cruiser.mjs names existing paths', async () => {
    const { default: config } = await import(path.join(projectRoot, '.dependency-cruiser.mjs'));
    const sides = config.forbidden.flatMap(({ from, to }: Record<'from' | 'to', Side>) => [
      from,
      to,
    ]);
    const expressions = sides
      .flatMap(({ path: path_, pathNot }: Side) => [path_, pathNot].flat())
      .filter((each: string | undefined) => each !== undefined && !each.includes('node_modules'))
      .map((each: string) => each.replaceAll('[a-z-]+', '.*'));
    const missing = [...new Set<string>(expressions)]
      .flatMap(alternatives)
      .filter((each) => !files.some((file) => new RegExp(each).test(file)));
    expect(expressions.length).toBeGreaterThan(20);
    expect(missing).toEqual([]);
  });

  test('vitest.config.ts names existing paths', () => {
    const named = [...read('vitest.config.ts').matchAll(/'(test\/[^'*`]+)'/g)].map(
      ([, each]) => each,
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((each = '') => !existsSync(path.join(projectRoot, each)))).toEqual([]);
  });

  test('.oxlintrc.json names existing paths', () => {
    const named = [
      ...read('.oxlintrc.json').matchAll(/"((?:[\w{,}]+\/)+[\w{},/-]*)\/?\*\*\/\*\.ts"/g),
    ]
      .flatMap(([, each = '']) => alternatives(each))
      .map((each) => each.replace(/\/$/, ''));
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((each) => !existsSync(path.join(projectRoot, each)))).toEqual([]);
  });
});

interface Side {
  readonly path?: string | string[];
  readonly pathNot?: string | string[];
}
