// @module-tag attack
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { measureAgent } from '../../../src/agents/verification/measure-agent.js';
import {
  gatewayFailures,
  gatewayHealth,
  gatewayReady,
} from '../../../src/docker/containers/gateway-probe.js';
import { sendJson } from '../../support/provider-stub.js';
import { until } from '../../support/until.js';
import { OpenClawLab, READY_MS, TOKENS } from './openclaw-lab.js';

const BOT_TOKEN = '123456:rejected';

let lab: OpenClawLab;
let telegram: Server;
/** Paths that the runtime requested of the channel's API. */
const asked: string[] = [];

beforeAll(async () => {
  lab = await OpenClawLab.open();
  // Telegram's Bot API, which rejects every token.
  telegram = createServer((request, response) => {
    asked.push(request.url ?? '');
    sendJson(response, 401, { ok: false, error_code: 401, description: 'Unauthorized' });
  });
  telegram.listen(0, await lab.fixture.host.bridgeAddress());
  await once(telegram, 'listening');
}, 20 * 60_000);
afterAll(async () => {
  telegram?.closeAllConnections();
  telegram?.close();
  await lab?.close();
});

test(
  'real OpenClaw is ready and healthy with a rejected token, and names the channel',
  { timeout: 3 * READY_MS },
  async () => {
    const { port: apiPort } = telegram.address() as AddressInfo; // never a path for a TCP listener
    const apiRoot = `http://host.docker.internal:${apiPort}`;
    const spec = await lab.start(
      {
        TELEGRAM_BOT_TOKEN: BOT_TOKEN,
        SLACK_BOT_TOKEN: 'xoxb-rejected',
        SLACK_APP_TOKEN: 'xapp-rejected',
      },
      { channels: { telegram: { apiRoot } } },
    );
    const { port } = spec;
    const bounds = { timeoutMs: 5_000, token: TOKENS.gatewayToken };
    await until(() => asked.some((path) => path.includes(BOT_TOKEN)), READY_MS);
    await until(
      async () => (await gatewayFailures(port, bounds))?.includes('telegram') === true,
      READY_MS,
    );
    expect(await gatewayReady(port, bounds)).toMatchObject({ ready: false, status: 503 });
    expect(await gatewayReady(port, { ...bounds, hasChannels: true })).toMatchObject({
      ready: true,
    });
    expect(await gatewayHealth(port, bounds)).toMatchObject({ healthy: true });
    expect((await lab.ask(port, TOKENS.gatewayToken)).status).toBe(200);

    const { checks } = await measureAgent(
      {
        docker: lab.fixture.host,
        specs: {
          specOf: () => Promise.resolve(spec),
          gatewayOf: () =>
            Promise.resolve({ port, gatewayToken: TOKENS.gatewayToken, hasChannels: true }),
        },
      },
      { agentId: spec.agentId, userId: spec.userId, host: 'local' },
      AbortSignal.timeout(30_000),
    );
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  },
);
