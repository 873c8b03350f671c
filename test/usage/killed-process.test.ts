import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Meter } from '../../src/usage/meter.js';
import { settleAbandoned } from '../../src/usage/rollups.js';
import { keptLog } from '../support/platform-environment.js';
import { testDatabase } from '../support/postgres.js';
import { asOwner, rowsOf, unbalanced } from './ledger.js';

const PROGRAM = fileURLToPath(new URL('recording-child.mjs', import.meta.url));

/** Recorded calls after which it is killed: some are in the database, some on their way. */
const CALLS = 3_000;

/** @returns the ids of the calls that it said were recorded. */
async function recordUntilKilled(url: string, folder: string): Promise<string[]> {
  const child = spawn(process.execPath, [PROGRAM, url, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let said = '';
    for await (const chunk of child.stdout) {
      said += String(chunk);
      if (said.length > CALLS * 37) child.kill('SIGKILL');
    }
    return said.split('\n').slice(0, -1);
  } finally {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  }
}

test('a process that is killed loses no recorded call, doubles none, and holds nothing', async () => {
  const database = await testDatabase();
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-journal-'));
  const { log } = keptLog();
  const { db } = database;
  try {
    const recorded = await recordUntilKilled(database.url, folder);
    expect(recorded.length).toBeGreaterThanOrEqual(CALLS);
    // As if the time had passed after which it counts as gone.
    const past = new Date(Date.now() - 3_600_000);
    for (const name of readdirSync(folder)) await utimes(path.join(folder, name), past, past);
    await asOwner(
      database.ownerUrl,
      `UPDATE quota_reservations SET expires_at = now() - interval '1 s'`,
    );

    const left = readdirSync(folder);
    const takers = [1, 2].map(() => new Meter({ database: db, folder, log }));
    await settleAbandoned(db);
    const remaining = () => readdirSync(folder).filter((name) => left.includes(name));
    await expect.poll(remaining, { timeout: 30_000 }).toEqual([]);
    await Promise.all(takers.map((meter) => meter.close()));

    const rows = await rowsOf<{ id: string }>(db, 'SELECT call_id AS id FROM usage_logs');
    const found = new Set(rows.map(({ id }) => id));
    expect(recorded.filter((id) => !found.has(id))).toEqual([]);
    expect(found.size).toBe(rows.length);
    expect(await rowsOf(db, 'SELECT * FROM quota_reservations')).toEqual([]);
    expect(await unbalanced(db)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    await database.close();
    await rm(folder, { recursive: true, force: true });
  }
}, 60_000);
