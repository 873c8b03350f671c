import { expect, test } from 'vitest';
import { Database } from '../../../src/platform/database/database.js';
import { NamedValues } from '../../../src/platform/database/named-values.js';
import { testDatabase } from '../../support/postgres.js';

test('named values become numbered parameters, each sent once', { tags: 'attack' }, () => {
  const named = new NamedValues();
  const { text, values } = named.statement('SELECT $b, $a::text, $b', { a: 1, b: 'x\0y' });
  expect(text).toBe('SELECT $1, $2::text, $1');
  expect(values).toEqual(['x\\0y', 1]);
  expect(() => named.statement('SELECT $c', { a: 1 })).toThrow('$c has no value');
});

test('a statement keeps its name, and statements beyond a hundred get no name', () => {
  const named = new NamedValues();
  const nameOf = (number: number) => named.statement(`SELECT ${number}`, {}).name;
  const names = Array.from({ length: 100 }, (_, number) => nameOf(number));
  expect(new Set(names).size).toBe(100);
  expect(nameOf(7)).toBe(names[7]);
  expect(nameOf(100)).toBeUndefined();
});

test('a statement is prepared once, unless its plan depends on its values', async () => {
  const { url, close } = await testDatabase();
  const database = new Database(url, { maxConnections: 1 });
  try {
    const sql = 'SELECT $number::int AS number';
    for (const number of [1, 2]) {
      expect(await database.asPlatform().query(sql, { number })).toEqual([{ number }]);
    }
    const report = 'SELECT $number::text AS number';
    await database.asPlatform().query(report, { number: '3' }, { plan: 'fresh' });
    const prepared = await database
      .asPlatform()
      .query(`SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%AS number'`);
    expect(prepared).toEqual([{ statement: 'SELECT $1::int AS number' }]);
  } finally {
    await database.close();
    await close();
  }
});
