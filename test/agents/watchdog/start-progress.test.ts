import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  AgentNotReadyError,
  awaitReady,
  waitWhileStarting,
} from '../../../src/agents/watchdog/await-ready.js';
import { observeAgent } from '../../../src/agents/watchdog/observe-agent.js';
import { StartProgress } from '../../../src/agents/watchdog/start-progress.js';
import type { AgentContainers } from '../../../src/docker/containers/agent-containers.js';
import type {
  ContainerState,
  ContainerWork,
} from '../../../src/docker/containers/container-view.js';
import { freePort } from '../../../dev/ports.js';

const SECOND = 1_000;

/** A fake container that has run for a given time, with settable work. */
class Starting {
  work: ContainerWork = { cpuMs: 0, bytes: 0 };
  asked = 0;
  /** Number of inspections. */
  checks = 0;
  readonly #startedAt: string;
  status: ContainerState['status'] = 'running';

  constructor(runningMs: number) {
    this.#startedAt = new Date(Date.now() - runningMs).toISOString();
  }

  // Only the methods that the tests use.
  get containers(): AgentContainers {
    return {
      inspect: () => {
        this.checks++;
        return Promise.resolve(this.state);
      },
      work: () => {
        this.asked++;
        return Promise.resolve(this.work);
      },
    } as unknown as AgentContainers;
  }

  get state(): ContainerState {
    const { status } = this;
    return { id: 'container', status, startedAt: this.#startedAt } as ContainerState;
  }
}

describe('a container whose gateway does not answer', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

  /** Returns the seconds until the container no longer counts as starting, checked every 5 s. */
  async function startsFor(does: (starting: Starting) => void): Promise<number> {
    const starting = new Starting(0);
    const progress = new StartProgress(starting.containers);
    for (let seconds = 5; ; seconds += 5) {
      pass(5 * SECOND);
      does(starting);
      if (!(await progress.isStarting(starting.state))) return seconds;
    }
  }

  test('an idle container counts as starting for 60 s', async () => {
    expect(await startsFor(() => undefined)).toBe(60);
  });

  test('a container that uses the CPU counts as starting for up to 5 minutes', async () => {
    const computes = ({ work }: Starting, cpuMs: number) => ({
      ...work,
      cpuMs: work.cpuMs + cpuMs,
    });
    const slow = await startsFor((starting) => (starting.work = computes(starting, 500)));
    expect(slow).toBe(305);
    let until = 100;
    const stalls = await startsFor((starting) => {
      until -= 5;
      if (until > 0) starting.work = computes(starting, 500);
    });
    expect(stalls).toBeGreaterThanOrEqual(100);
    expect(stalls).toBeLessThanOrEqual(120);
  });

  test('a container that reads from disk counts as starting for up to 5 minutes', async () => {
    const reads = await startsFor((starting) => {
      starting.work = { ...starting.work, bytes: starting.work.bytes + 1024 * 1024 };
    });
    expect(reads).toBe(305);
  });

  test('the work of a health check does not count as progress', async () => {
    const checked = await startsFor((starting) => {
      starting.work = { cpuMs: starting.work.cpuMs + 30, bytes: starting.work.bytes + 2_000 };
    });
    expect(checked).toBe(60);
  });

  test('a restarted container counts as starting from its new start', async () => {
    const progress = new StartProgress(new Starting(0).containers);
    expect(await progress.isStarting(new Starting(70 * SECOND).state)).toBe(false);
    expect(await progress.isStarting(new Starting(SECOND).state)).toBe(true);
  });

  test("measures a starting container's work only every few seconds", async () => {
    const starting = new Starting(0);
    const progress = new StartProgress(starting.containers);
    for (let asked = 0; asked < 20; asked++) {
      pass(SECOND);
      await progress.isStarting(starting.state);
    }
    expect(starting.asked).toBe(5);
  });
});

describe('the start of a container', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  const agentId = 'agent';
  const gatewayAt = (port: number) => ({
    port,
    gatewayToken: 'token',
    hasChannels: false,
    signal: new AbortController().signal,
  });
  async function listen(port: number): Promise<void> {
    server = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end('{"ready":true,"ok":true}'),
    );
    await once(server.listen(port, '127.0.0.1'), 'listening');
  }

  test('a start over 60 s that makes progress is waited for and is no crash', async () => {
    const port = await freePort();
    const slow = new Starting(70 * SECOND);
    slow.work = { cpuMs: 15 * SECOND, bytes: 0 };
    const { containers } = slow;
    const progress = new StartProgress(containers);
    const ready = awaitReady(containers, progress, agentId, gatewayAt(port));
    const seen = await observeAgent({ containers, progress }, agentId, port);
    expect(seen.health).toBe('starting');
    await listen(port);
    await ready;
  });

  test('a hanging start fails after 60 s', async () => {
    const { containers } = new Starting(61 * SECOND);
    const progress = new StartProgress(containers);
    const port = await freePort();
    const waiting = awaitReady(containers, progress, agentId, gatewayAt(port));
    await expect(waiting).rejects.toThrow(AgentNotReadyError);
    expect((await observeAgent({ containers, progress }, agentId, port)).health).toBe('unhealthy');
  });

  test('a start holds its turn while it works, until it is ready or has ended', async () => {
    const idle = new Starting(10 * SECOND);
    const progress = new StartProgress(idle.containers);
    const port = await freePort();
    await waitWhileStarting(idle.containers, progress, agentId, gatewayAt(port));

    const ended = new Starting(0);
    ended.status = 'exited';
    await waitWhileStarting(ended.containers, progress, agentId, gatewayAt(port));

    const busy = new Starting(SECOND);
    let isOver = false;
    const starting = waitWhileStarting(busy.containers, progress, agentId, gatewayAt(port));
    void starting.then(() => (isOver = true));
    // Enough inspections to observe that it works.
    await expect.poll(() => busy.checks).toBeGreaterThan(3);
    expect(isOver).toBe(false);
    await listen(port);
    await starting;
  });

  test('a start holds its turn for 60 s at most, even while it works', async () => {
    const busy = new Starting(SECOND);
    const progress = new StartProgress(busy.containers);
    vi.spyOn(progress, 'idleForMs').mockResolvedValue(0);
    const starting = waitWhileStarting(
      busy.containers,
      progress,
      agentId,
      gatewayAt(await freePort()),
    );
    await expect.poll(() => busy.checks).toBeGreaterThan(1);
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61 * SECOND);
    await starting.finally(() => later.mockRestore());
  });
});
