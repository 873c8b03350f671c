import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { Hex } from 'viem';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readLocalChain } from '../../dev/chain/local-chain.js';
import { keptPorts } from '../../dev/kept-ports.js';
import { poll } from '../../dev/poll.js';
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
import { Place, survivors, type Launcher } from './launcher.js';

const attack = { tags: 'attack' };
const RUNNING = 'Ctrl-C stops everything.';

const OPERATOR_KEY = `0x${randomBytes(31).toString('hex')}01`;

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
  test('npm start starts everything, refuses a second start, stops everything and keeps its data', async () => {
    const agents = { ...AGENTS, AGENT_RUNTIME_IMAGE: await ensureTestImage(docker) };
    const first = place.start(agents);
    await first.printed(RUNNING);
    expect(first.output).toContain(`http://127.0.0.1:${place.webPort}`);
    expect(first.output).toContain('export INTERNAL_API_KEY=');
    expect(first.output).toContain('first admin   the first person to register');
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
    second.kill('SIGTERM');
    expect(await second.ended).toBe(0);
  });

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
      expect(texts.join('\n')).toContain('settlePaymentSession');
      const logs = ['api', 'agents-ai', 'summarizer', 'worker', 'payments'].map((name) =>
        readFile(path.join(place.dataDir, 'run', `${name}.log`), 'utf8'),
      );
      return [...texts, ...(await Promise.all(logs))];
    } finally {
      await connection.close();
    }
  }

  test('npm start recovers from a kill, leaves nothing of it behind, and ends with npm', async () => {
    const first = place.start();
    await first.printed(RUNNING);
    const old = await place.processes();
    first.kill('SIGKILL');
    await first.ended;

    const npm = place.startByNpm('start');
    await npm.printed(RUNNING);
    expect(await survivors(old)).toEqual([]);
    const running = await place.processes();
    npm.kill('SIGTERM');
    await npm.printed('Stopped.');
    expect(await survivors(running)).toEqual([]);
  });

  describe('a running platform', () => {
    let shared: Place;
    let launcher: Launcher;
    beforeAll(async () => {
      shared = await Place.make();
      launcher = shared.start({
        OPERATOR_PRIVATE_KEY: OPERATOR_KEY,
        ADMIN_EMAILS: 'boss@example.com',
        AGENT_AI_HOST: '127.0.0.1',
      });
      // Programs that refuse the key have run as well by then.
      await launcher.printed('Migrated the database');
      await launcher.printed('/api/auth/admin?token=');
      await launcher.printed(RUNNING);
    });
    afterAll(async () => {
      launcher?.kill('SIGINT');
      const code = await launcher?.ended;
      await shared?.close();
      expect(code).toBe(0);
    });

    test.runIf(process.platform === 'linux')(
      'only the process that makes payments has the key that signs them',
      attack,
      async () => {
        const processes = await shared.processes();
        const environments = await Promise.all(
          processes.map(async ({ name, pid }) => ({
            name,
            environment: await readFile(`/proc/${pid}/environ`, 'utf8'),
          })),
        );
        const holders = environments.filter(({ environment }) =>
          environment.includes(OPERATOR_KEY),
        );
        expect(holders.map(({ name }) => name)).toEqual(['payments']);
        // The summarizer reads strangers' pages.
        const summarizer = environments.find(({ name }) => name === 'summarizer')?.environment;
        expect(summarizer).toContain('SUMMARIZER_PORT=');
        expect(summarizer).not.toMatch(/[A-Z]_(?:KEY|SECRET)=|DATABASE_URL=/);
      },
    );

    test(
      "users are served while the agents' process hangs, and agents while the users' process hangs",
      attack,
      async () => {
        const processes = await shared.processes();
        const pidOf = (name: string) => processes.find((each) => each.name === name)?.pid ?? 0;
        const status = async (url: string) =>
          (await fetch(url, { signal: AbortSignal.timeout(60_000) })).status;
        const users = () => status(`http://127.0.0.1:${shared.webPort}/api/auth/session`);
        const agents = () => status(`http://127.0.0.1:${shared.agentAiPort}/v1/models`);
        expect([await users(), await agents()]).toEqual([200, 401]);
        // A stopped process is as silent as one whose event loop is blocked.
        const [ofAgents, ofUsers] = [pidOf('agents-ai'), pidOf('api')];
        process.kill(ofAgents, 'SIGSTOP');
        expect(await users()).toBe(200);
        process.kill(ofAgents, 'SIGCONT');
        process.kill(ofUsers, 'SIGSTOP');
        expect(await agents()).toBe(401);
        process.kill(ofUsers, 'SIGCONT');
      },
    );

    test('a killed process is restarted', async () => {
      const victims = {
        postgres: 'PostgreSQL',
        temporal: 'Temporal',
        chain: 'The chain',
        worker: 'worker',
        payments: 'payments',
        api: 'api',
        'agents-ai': 'agents-ai',
        summarizer: 'summarizer',
      };
      for (const [record, name] of Object.entries(victims)) {
        const victim = (await shared.processes()).find((each) => each.name === record);
        process.kill(victim?.pid ?? 0, 'SIGKILL');
        await launcher.printed(`${name} runs again.`);
      }
    });
  });

  test('npm start reports missing services and serves all that works without them', async () => {
    const nowhere = `127.0.0.1:${await freePort()}`;
    const launcher = place.start({
      DOCKER_HOST: `tcp://${nowhere}`,
      TEMPORAL_ADDRESS: nowhere,
      CHAIN_RPC_URL: `http://${nowhere}`,
      INTERNAL_API_KEY: 'key',
    });
    await launcher.printed(RUNNING);
    expect(launcher.output).toContain(`No Docker engine answers at DOCKER_HOST=tcp://${nowhere}.`);
    expect(launcher.output).toContain(`Temporal does not answer at ${nowhere}\n`);
    expect((await place.processes()).map(({ name }) => name)).not.toContain('chain');
    expect(readLocalChain(place.dataDir)).toBeUndefined();
    const backend = `http://127.0.0.1:${place.backendPort}`;
    const health = await fetch(`${backend}/health`);
    expect(await health.json()).toMatchObject({
      docker: 'unavailable',
      provisioning: 'disabled',
    });
    const refused = await fetch(`${backend}/api/agents`, {
      method: 'POST',
      headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
      body: '{"name":"nobody"}',
    });
    expect(refused.status).toBe(500);
    launcher.kill('SIGINT');
    expect(await launcher.ended).toBe(0);
  });

  test('npm start names the variable to set when the port for agents is in use', async () => {
    const other = createServer().listen(place.agentAiPort, '127.0.0.1');
    try {
      const launcher = place.start({ AGENT_AI_HOST: '127.0.0.1' });
      expect(await launcher.ended).toBe(1);
      expect(launcher.output.trim().split('\n').at(-1)).toBe(
        `Cannot listen on 127.0.0.1:${place.agentAiPort}: the port is taken by another program: ` +
          "set AGENT_AI_PORT to a free port, for the agents' AI calls",
      );
    } finally {
      other.close();
    }
  });

  test('npm start names the variable to set when a port is in use, in one line', async () => {
    const other = createServer().listen(place.webPort, '127.0.0.1');
    try {
      const launcher = place.start();
      expect(await launcher.ended).toBe(1);
      expect(launcher.output.trim()).toBe(
        `Port ${place.webPort} on 127.0.0.1 is in use: set WEB_PORT to a free port.`,
      );
    } finally {
      other.close();
    }
  });

  test('npm start leaves no process behind when it is stopped twice during its start', async () => {
    const launcher = place.start();
    await launcher.printed('Starting PostgreSQL');
    const begun = await poll(
      async () => {
        const processes = await place.processes();
        return processes.length > 0 ? processes : undefined;
      },
      { timeoutMs: 20_000 },
    );
    launcher.kill('SIGINT');
    launcher.kill('SIGINT');
    await launcher.ended;
    expect(await survivors(begun ?? [])).toEqual([]);
    expect(await place.processes()).toEqual([]);
  });
});
