import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { Hex } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readLocalChain } from '../../dev/chain/local-chain.js';
import { keptPorts } from '../../dev/kept-ports.js';
import { freePort } from '../../dev/ports.js';
import { runningEnvironment } from '../../dev/running-environment.js';
import { loadSecrets } from '../../dev/secrets.js';
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
import { Place, RUNNING, survivors } from './launcher.js';

/** Two starts and two tours take a minute and a half alone. */
const SLOW = { timeout: 300_000 };

const keyIn = (output: string) => /INTERNAL_API_KEY=(\S+)/.exec(output)?.[1];

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

describe('npm start', () => {
  test(
    'npm start starts everything, refuses a second start, stops everything and keeps its data',
    SLOW,
    async () => {
      const operators = await operatorsAddresses();
      const agents = {
        ...AGENTS,
        ...operators,
        AGENT_RUNTIME_IMAGE: await ensureTestImage(docker),
      };
      const first = place.start(agents);
      await first.printed(RUNNING);
      expect(first.output).toContain(`http://127.0.0.1:${place.webPort}`);
      expect(first.output).toContain('export INTERNAL_API_KEY=');
      expect(first.output).toContain('first admin   the first person to register');
      await first.printed('AI: no model is available: Set OPENROUTER_API_KEY');
      const running = await place.processes();
      expect(running.map(({ name }) => name).sort()).toEqual([
        'agents-ai',
        'api',
        'chain',
        'payments',
        'postgres',
        'summarizer',
        'temporal',
        'worker',
      ]);

      for (const address of Object.values(operators)) {
        const at = `http://127.0.0.1:${address.replace(/^.*:/, '')}`;
        await expect
          .poll(async () => (await fetch(`${at}/readyz`)).json())
          .toMatchObject({ ready: true });
        expect((await fetch(`${at}/livez`)).status).toBe(200);
        const metrics = await (await fetch(`${at}/metrics`)).text();
        expect(metrics).toContain('aps_event_loop_utilization');
      }

      const chain = readLocalChain(place.dataDir);
      expect(first.output).toContain(`chain         ${chain?.rpcUrl}`);
      const balances = `/api/wallet?address=${chain?.operator}`;
      const told = await fetch(`http://127.0.0.1:${place.webPort}${balances}`);
      expect(await told.json()).toMatchObject({
        chainId: 4217,
        pathUsd: { balanceRaw: expect.stringMatching(/^\d{9,}$/) },
      });

      const beside = place.start();
      expect(await beside.ended).toBe(1);
      expect(beside.output.trim().split('\n')).toHaveLength(1);
      expect(beside.output).toContain(`process ${first.pid}, at http://127.0.0.1:${place.webPort}`);

      const bought = await goOnMoneyTour();
      expect(bought).toMatch(/^1000 bought, 0\.000000 pathUSD left$/m);
      expect(bought).toContain('"code": "SESSION_EXHAUSTED"');
      expect(bought).toMatch(/^transaction 0x[\da-f]{64} settled the session$/m);
      const { keys, rows } = await stored();
      expect(secretsOfMoneyIn([...rows, ...(await textsOfRuns())], keys)).toEqual([]);

      first.kill('SIGINT');
      expect(await first.ended).toBe(0);
      expect(await survivors(running)).toEqual([]);

      const second = place.start({ ...agents, ADMIN_EMAILS: 'boss@example.com' });
      await second.printed(RUNNING);
      expect(second.output).toMatch(/boss@example\.com.*\n.*\/api\/auth\/admin\?token=/);
      // Only the first start migrates the schema and shows the key.
      expect(first.output).toContain('Migrated the database');
      expect(second.output).not.toContain('Migrated the database');
      expect(second.output).not.toContain(keyIn(first.output));
      expect(second.output).toContain('INTERNAL_API_KEY=$(node -p');
      expect(readLocalChain(place.dataDir)).toEqual(chain);
      await goOnMoneyTour('agents');
      const tour = place.startBeside('tour');
      expect(await tour.ended, tour.output).toBe(0);
      expect(tour.output).toContain('No AI provider is set up, so the tour skips the question');
      expect(tour.output).toMatch(/"operation": "start",\s+"status": "succeeded"/);
      second.kill('SIGTERM');
      expect(await second.ended).toBe(0);
    },
  );

  /**
   * Runs the money tour to its end and checks that the engine has no leftovers.
   *
   * @returns its output.
   */
  async function goOnMoneyTour(...parts: readonly string[]): Promise<string> {
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
});

/** Returns settings with a free address for the operators of each process. */
async function operatorsAddresses() {
  return {
    METRICS_PORT: String(await freePort()),
    AGENT_AI_METRICS_PORT: String(await freePort()),
    WORKER_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
    PAYMENTS_METRICS_LISTEN: `127.0.0.1:${await freePort()}`,
    SUMMARIZER_METRICS_PORT: String(await freePort()),
  };
}
