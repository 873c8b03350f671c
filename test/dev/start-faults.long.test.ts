import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readLocalChain } from '../../dev/chain/local-chain.js';
import { poll } from '../../dev/poll.js';
import { freePort } from '../../dev/ports.js';
import { loadSecrets } from '../../dev/secrets.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { removeRemains } from '../support/docker-remains.js';
import { Place, RUNNING, survivors, type Launcher } from './launcher.js';

const attack = { tags: 'attack' };

const OPERATOR_KEY = `0x${randomBytes(31).toString('hex')}01`;

const docker = connectDocker(process.env.DOCKER_HOST);

let place: Place;
beforeEach(async () => {
  place = await Place.make();
});
afterEach(async () => {
  const { installation } = loadSecrets(place.dataDir);
  await place.close();
  await removeRemains(docker, installation);
});

describe('faults of npm start', () => {
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
        // The summarizer reads strangers' pages; its own key opens nothing else.
        const summarizer = environments.find(({ name }) => name === 'summarizer')?.environment;
        expect(summarizer).toContain('SUMMARIZER_PORT=');
        expect(summarizer).not.toMatch(/(?<!\0SUMMARIZER)_(?:KEY|SECRET)=|DATABASE_URL=/);
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
    expect(launcher.output).toContain(`Temporal does not answer at ${nowhere}; retrying\n`);
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
        `Cannot listen on 127.0.0.1:${place.agentAiPort}: the port is used by another program; ` +
          'set AGENT_AI_PORT to another port',
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
