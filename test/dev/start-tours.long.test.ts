import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { Hex } from 'viem';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keptPorts } from '../../dev/kept-ports.js';
import { runningEnvironment } from '../../dev/running-environment.js';
import { loadSecrets } from '../../dev/secrets.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { Database } from '../../src/platform/database/database.js';
import { ringOf } from '../../src/platform/secrets/key-ring.js';
import { SecretBox } from '../../src/platform/secrets/secret-box.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { textsOfRows } from '../platform/database/traces.js';
import { agentPlaces } from '../support/agent-places.js';
import { keptKeysOf, secretsOfMoneyIn } from '../support/chain/money-secrets.js';
import { remainsOf, removeRemains } from '../support/docker-remains.js';
import { textsOfHistories } from '../support/histories.js';
import { Place, RUNNING } from './launcher.js';

/** Two starts and two tours already take a minute and a half. */
const SLOW = { timeout: 300_000 };

const docker = connectDocker(process.env.DOCKER_HOST);
/** Ports and subnets that no other test uses. */
const AGENTS = agentPlaces();

let place: Place;
beforeEach(async () => {
  place = await Place.make();
});
afterEach(async () => {
  const { installation } = loadSecrets(place.dataDir);
  await place.close();
  await removeRemains(docker, installation);
});

test(
  'the tours run twice beside npm start, leave nothing behind and show no secret',
  SLOW,
  async () => {
    const agents = { ...AGENTS, AGENT_RUNTIME_IMAGE: await ensureTestImage(docker) };
    const first = place.start(agents);
    await first.printed(RUNNING);

    const bought = await runMoneyTour();
    expect(bought).toMatch(/^1000 bought, 0\.000000 pathUSD left$/m);
    expect(bought).toContain('"code": "SESSION_EXHAUSTED"');
    expect(bought).toMatch(/^transaction 0x[\da-f]{64} settled the session$/m);
    const { keys, rows } = await stored();
    expect(secretsOfMoneyIn([...rows, ...(await textsOfRuns())], keys)).toEqual([]);
    first.kill('SIGINT');
    expect(await first.ended).toBe(0);

    const second = place.start({
      ...agents,
      PLATFORM_TOKEN_ADDRESS: PATH_USD,
      VIDEO_API_TOKEN: 'local',
    });
    await second.printed(RUNNING);
    await runMoneyTour('agents');
    const tour = place.startBeside('tour');
    expect(await tour.ended, tour.output).toBe(0);
    expect(tour.output).toContain('No AI provider is set up, so the tour skips the question');
    expect(tour.output).toMatch(/"operation": "start",\s+"status": "succeeded"/);
    expect(tour.output).toMatch(/"valid": true,[^]*"valid": false,/);
    for (const shown of ['agents_list', 'sunrise.mp4', 'ffplay "http:', '"spans": [']) {
      expect(tour.output).toContain(shown);
    }
    second.kill('SIGTERM');
    expect(await second.ended).toBe(0);
  },
);

/**
 * Runs the money tour to its end and checks that the engine has no leftovers.
 *
 * @returns its output.
 */
async function runMoneyTour(...parts: readonly string[]): Promise<string> {
  const tour = place.startBeside('tour-money', ...parts);
  expect(await tour.ended, tour.output).toBe(0);
  expect(tour.output).toMatch(/^ledger: balanced \(.*\)$/m);
  for (const shown of ['"status": "running"', '"status": "completed"', 'has 2.000001 USDC']) {
    expect(tour.output).toContain(shown);
  }
  // The tour shows its own session once and has closed it by now.
  const own = /^SESSION='(.*)'$/m.exec(tour.output)?.[1] ?? 'none';
  expect(secretsOfMoneyIn([tour.output.replaceAll(own, '')])).toEqual([]);
  const { installation } = loadSecrets(place.dataDir);
  const left = () => remainsOf(docker, installation);
  await expect.poll(left).toEqual({ containers: [], networks: [], volumes: [] });
  return tour.output;
}

/** Returns all rows of the database, and the keys that some rows hold encrypted. */
async function stored(): Promise<{ rows: string[]; keys: Hex[] }> {
  const { DATABASE_URL = '' } = runningEnvironment(place.dataDir, {});
  const database = new Database(DATABASE_URL, { maxConnections: 1 });
  try {
    const platform = database.asPlatform();
    const keys = await keptKeysOf(platform, new SecretBox(ringOf(place.encryptionKey)));
    expect(keys).toHaveLength(1);
    const rows = await textsOfRows(platform);
    for (const table of ['payment_sessions', 'payment_vouchers', 'transactions']) {
      expect([table, rows.some((row) => row.startsWith(`${table} `))]).toEqual([table, true]);
    }
    return { rows, keys };
  } finally {
    await database.close();
  }
}

/** Returns the texts of workflow histories and of our processes' logs. */
async function textsOfRuns(): Promise<string[]> {
  const { temporal } = keptPorts(place.dataDir);
  const connection = await Connection.connect({ address: `127.0.0.1:${temporal}` });
  try {
    const { texts } = await textsOfHistories(new Client({ connection }));
    expect(texts.join('\n')).toContain('payRoyaltySplit');
    const logs = ['api', 'agents-ai', 'summarizer', 'worker', 'payments'].map((name) =>
      readFile(path.join(place.dataDir, 'run', `${name}.log`), 'utf8'),
    );
    return [...texts, ...(await Promise.all(logs))];
  } finally {
    await connection.close();
  }
}
