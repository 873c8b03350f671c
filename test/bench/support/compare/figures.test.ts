import { expect, test } from 'vitest';
import { figuresIn } from '../../../../bench/support/compare/figures.js';

const OUTPUT = `Built 3 files.

At a constant rate:

| way          | a second | p50  | p50 over direct |
|--------------|---------:|-----:|----------------:|
| this product |      200 | 1.80 |            1.50 |
| aim, at most |          |      |               1 |

16 connections, in turns:

| way                | a second | server's CPU, µs each | share of bare | aim |
|--------------------|---------:|----------------------:|--------------:|----:|
| /api/agents        |     1961 | 410 (api 300, Post SQL 110) |    0.49 | 0.7 |
|   bare Koa handler |     3991 |                  12.5 |               |     |
| /api/session       |     4467 |                     - |          0.50 | 0.7 |
|   bare Koa handler |     8926 |                     7 |               |     |
`;

test('reads every measured cell of every table, without aims and ratios', () => {
  const read = figuresIn(OUTPUT).map(({ kind, name, value }) => [name, value, kind]);
  expect(read).toEqual([
    ['this product: a second', 200, 'rate'],
    ['this product: p50', 1.8, 'other'],
    ['/api/agents: a second', 1961, 'rate'],
    ["/api/agents: server's CPU, µs each", 410, 'CPU'],
    ["/api/agents: server's CPU, µs each (api)", 300, 'CPU'],
    ["/api/agents: server's CPU, µs each (Post SQL)", 110, 'CPU'],
    ['/api/agents > bare Koa handler: a second', 3991, 'rate'],
    ["/api/agents > bare Koa handler: server's CPU, µs each", 12.5, 'CPU'],
    ['/api/session: a second', 4467, 'rate'],
    ['/api/session > bare Koa handler: a second', 8926, 'rate'],
    ["/api/session > bare Koa handler: server's CPU, µs each", 7, 'CPU'],
  ]);
});

test('assigns each figure a key that names its table and the caption above the table', () => {
  const figures = figuresIn(OUTPUT);
  expect(new Set(figures.map(({ key }) => key)).size).toBe(figures.length);
  expect(figures[0]).toMatchObject({ table: 0, caption: 'At a constant rate:' });
  expect(figures[2]).toMatchObject({ table: 1, caption: '16 connections, in turns:' });
});

test('finds no figures in an output without tables', () => {
  expect(figuresIn('Built 3 files.\n| a pipe in a sentence\n')).toEqual([]);
});
