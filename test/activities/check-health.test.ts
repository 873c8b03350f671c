import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createWatchdogActivities } from '../../activities/watchdog.js';
import { AgentGoneError } from '../../src/agents/agents/agents.js';
import { hostLimiters } from '../../src/agents/watchdog/host-limiters.js';

const AGENT = { agentId: 'a', userId: 'ada', host: 'local' };
const CHECK_INTERVAL_MS = 120_000;

let gateway: Server;
beforeEach(async () => {
  gateway = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end('{"ok":true}'),
  );
  await once(gateway.listen(0, '127.0.0.1'), 'listening');
});
afterEach(() => gateway.close());

test('a healthy agent is checked at its usual interval while the database is unavailable', async () => {
  const { port } = gateway.address() as { port: number }; // a TCP address is never a string
  const portOf = vi.fn().mockResolvedValueOnce(port).mockRejectedValue(new Error('no database'));
  const { watchHealth } = createWatchdogActivities({
    docker: { containers: {} },
    ports: { of: portOf },
    states: { recordSeen: () => undefined },
    limiters: hostLimiters(1),
    checkIntervalMs: CHECK_INTERVAL_MS,
  } as unknown as Parameters<typeof createWatchdogActivities>[0]); // the parts that this test uses
  // Attempts of one watch.
  for (let check = 0; check < 3; check++) {
    const quiet = { logger: new DefaultLogger('ERROR', () => undefined) };
    const attempt = new MockActivityEnvironment({ attempt: check + 1 }, quiet);
    const unchanged = await attempt
      .run(() => watchHealth(AGENT, 'healthy'))
      .catch((e: unknown) => e);
    expect(unchanged).toMatchObject({ type: 'Unchanged' });
    const { nextRetryDelay } = unchanged as { readonly nextRetryDelay: number };
    expect(nextRetryDelay).toBeGreaterThanOrEqual(CHECK_INTERVAL_MS * 0.9);
  }
  expect(portOf).toHaveBeenCalledOnce();
});

test('a removed agent is not checked again', async () => {
  const { observeAgent, watchHealth } = createWatchdogActivities({
    docker: { containers: {} },
    ports: { of: () => Promise.reject(new AgentGoneError(AGENT.agentId)) },
    limiters: hostLimiters(1),
    checkIntervalMs: CHECK_INTERVAL_MS,
  } as unknown as Parameters<typeof createWatchdogActivities>[0]); // the parts that this test uses
  for (const observe of [() => watchHealth(AGENT, 'healthy'), () => observeAgent(AGENT)]) {
    const quiet = { logger: new DefaultLogger('ERROR', () => undefined) };
    const observing = new MockActivityEnvironment({}, quiet).run(observe);
    await expect(observing).rejects.toMatchObject({ type: 'AgentGoneError', nonRetryable: true });
  }
});
