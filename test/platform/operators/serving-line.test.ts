import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/platform/database/migrations/index.js';
import { logServing } from '../../../src/platform/operators/serving-line.js';
import { readRelease } from '../../../src/platform/process/release.js';
import { memoryLog } from '../../api/http/support.js';

test('logs one line with release, addresses, schema and places, and without credentials', () => {
  const { lines, log } = memoryLog();
  logServing(log, {
    addresses: ['http://127.0.0.1:3000', undefined],
    databaseUrl: 'postgres://aps:secret@db.internal:5433/agents?sslmode=disable',
    temporal: 'agents at temporal:7233',
    hosts: ['local'],
    providers: ['openai'],
  });
  expect(lines).toEqual([
    expect.objectContaining({
      msg: 'serves',
      release: readRelease(),
      addresses: ['http://127.0.0.1:3000'],
      database: 'db.internal:5433/agents',
      schema: MIGRATIONS.at(-1)?.name,
      temporal: 'agents at temporal:7233',
      hosts: ['local'],
      providers: ['openai'],
    }),
  ]);
  expect(JSON.stringify(lines)).not.toContain('secret');
});

test('leaves out facts that a process does not have', () => {
  const { lines, log } = memoryLog();
  logServing(log, { addresses: ['http://127.0.0.1:3001'] });
  expect(Object.keys(lines[0] ?? {})).not.toContain('database');
});
