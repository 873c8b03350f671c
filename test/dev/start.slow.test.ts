import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readLocalChain } from '../../dev/chain/local-chain.js';
import { freePort } from '../../dev/ports.js';
import { loadSecrets } from '../../dev/secrets.js';
import { connectDocker } from '../../src/docker/containers/docker-client.js';
import { ensureTestImage } from '../agent-image/ensure-test-image.js';
import { agentPlaces } from '../support/agent-places.js';
import { removeRemains } from '../support/docker-remains.js';
import { Place, RUNNING, survivors } from './launcher.js';

/** Two starts already take half a minute. */
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
      const shown = await fetch(`http://127.0.0.1:${place.webPort}${balances}`);
      expect(await shown.json()).toMatchObject({
        chainId: 4217,
        pathUsd: { balanceRaw: expect.stringMatching(/^\d{9,}$/) },
      });

      const beside = place.start();
      expect(await beside.ended).toBe(1);
      expect(beside.output.trim().split('\n')).toHaveLength(1);
      expect(beside.output).toContain(`process ${first.pid}, at http://127.0.0.1:${place.webPort}`);

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
      second.kill('SIGTERM');
      expect(await second.ended).toBe(0);
    },
  );
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
