import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Meter } from '../../../src/ai/usage/meter.js';
import { queryRows } from '../../platform/database/catalog.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase } from '../../support/postgres.js';
import { asOwner, rowsOf, unbalanced } from './ledger.js';

const PROGRAM = fileURLToPath(new URL('recording-child.mjs', import.meta.url));

/** Calls recorded before the kill: some are in the database then, others are still on their way. */
const CALLS = 3_000;

/** @returns the ids of the calls reported as recorded. */
async function recordUntilKilled(url: string, folder: string): Promise<string[]> {
  const said = path.join(folder, 'said');
  const output = openSync(said, 'a');
  const child = spawn(process.execPath, [PROGRAM, url, path.join(folder, 'journal')], {
    stdio: ['ignore', output, 'inherit'],
  });
  const exited = once(child, 'exit');
  closeSync(output);
  const recorded = () => readFileSync(said, 'utf8').split('\n').slice(0, -1);
  try {
    const count = () => recorded().length;
    await expect.poll(count, { interval: 20 }).toBeGreaterThan(CALLS);
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
  return recorded();
}

/** Returns the number of other connections to the database. */
async function connectionsTo(ownerUrl: string): Promise<number> {
  const others = await queryRows(
    ownerUrl,
    `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND backend_type = 'client backend'
            AND pid <> pg_backend_pid()`,
  );
  return others.length;
}

test('a killed process loses no recorded call, counts none twice and leaves no tokens held', async () => {
  const database = await testDatabase();
  const place = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  const folder = path.join(place, 'journal');
  const { log } = keptLog();
  const { db } = database;
  try {
    const recorded = await recordUntilKilled(database.url, place);
    expect(recorded.length).toBeGreaterThanOrEqual(CALLS);
    // The server finishes the last statement of the killed process, which may hold tokens.
    await expect.poll(() => connectionsTo(database.ownerUrl)).toBe(0);
    await asOwner(
      database.ownerUrl,
      `UPDATE quota_reservations SET expires_at = now() - interval '1 s'`,
    );

    const left = readdirSync(folder);
    const takers = [1, 2].map(() => new Meter({ database: db, folder, log, signOfLifeMs: 50 }));
    const remaining = () => readdirSync(folder).filter((name) => left.includes(name));
    await expect.poll(remaining).toEqual([]);
    const held = () => rowsOf(db, 'SELECT * FROM quota_reservations');
    await expect.poll(held).toEqual([]);
    await Promise.all(takers.map((meter) => meter.close()));

    const rows = await rowsOf<{ id: string }>(db, 'SELECT call_id AS id FROM usage_logs');
    const found = new Set(rows.map(({ id }) => id));
    expect(recorded.filter((id) => !found.has(id))).toEqual([]);
    expect(found.size).toBe(rows.length);
    expect(await unbalanced(db)).toEqual([]);
    const tools = 'SELECT sum(calls)::integer AS calls FROM tool_usage_daily';
    expect(await rowsOf(db, tools)).toEqual([{ calls: rows.length }]);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    await database.close();
    await rm(place, { recursive: true, force: true });
  }
});
