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

/** A container that has run for so long, and what it does meanwhile. */
class Starting {
  work: ContainerWork = { cpuMs: 0, bytes: 0 };
  asked = 0;
  /** How often it was looked at. */
  looks = 0;
  readonly #startedAt: string;
  status: ContainerState['status'] = 'running';

  constructor(runningMs: number) {
    this.#startedAt = new Date(Date.now() - runningMs).toISOString();
  }

  // What is not asked for here is not there.
  get containers(): AgentContainers {
    return {
      inspect: () => {
        this.looks++;
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

describe('a container that does not answer', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const pass = (ms: number) => vi.setSystemTime(Date.now() + ms);

  /** Whether it is taken for starting, every 5 s from its start on; ends with the first "no". */
  async function startsFor(does: (starting: Starting) => void): Promise<number> {
    const starting = new Starting(0);
    const progress = new StartProgress(starting.containers);
    for (let seconds = 5; ; seconds += 5) {
      pass(5 * SECOND);
      does(starting);
      if (!(await progress.isStarting(starting.state))) return seconds;
    }
  }

  test('and does nothing is given 60 s', async () => {
    expect(await startsFor(() => undefined)).toBe(60);
  });

  test('is given longer as long as it computes, and 5 minutes at most', async () => {
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

  test('is given longer as long as it reads from disk', async () => {
    const reads = await startsFor((starting) => {
      starting.work = { ...starting.work, bytes: starting.work.bytes + 1024 * 1024 };
    });
    expect(reads).toBe(305);
  });

  test('is not helped by what a health check takes', async () => {
    const checked = await startsFor((starting) => {
      starting.work = { cpuMs: starting.work.cpuMs + 30, bytes: starting.work.bytes + 2_000 };
    });
    expect(checked).toBe(60);
  });

  test('and was started again begins anew', async () => {
    const progress = new StartProgress(new Starting(0).containers);
    expect(await progress.isStarting(new Starting(70 * SECOND).state)).toBe(false);
    expect(await progress.isStarting(new Starting(SECOND).state)).toBe(true);
  });

  test('is asked about every few seconds only', async () => {
    const starting = new Starting(0);
    const progress = new StartProgress(starting.containers);
    for (let asked = 0; asked < 20; asked++) {
      pass(SECOND);
      await progress.isStarting(starting.state);
    }
    expect(starting.asked).toBe(5);
  });
});

describe('a start', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  const agentId = 'agent';
  const gatewayAt = (port: number) => ({
    ...{ port, gatewayToken: 'token', signal: new AbortController().signal },
  });
  async function listen(port: number): Promise<void> {
    server = createServer((_, response) =>
      response.setHeader('content-type', 'application/json').end('{"ready":true,"ok":true}'),
    );
    await once(server.listen(port, '127.0.0.1'), 'listening');
  }

  test('that takes longer than 60 s and makes progress is waited for, and no crash', async () => {
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

  test('that hangs is given up after 60 s', async () => {
    const { containers } = new Starting(61 * SECOND);
    const progress = new StartProgress(containers);
    const port = await freePort();
    const waiting = awaitReady(containers, progress, agentId, gatewayAt(port));
    await expect(waiting).rejects.toThrow(AgentNotReadyError);
    expect((await observeAgent({ containers, progress }, agentId, port)).health).toBe('unhealthy');
  });

  test('uses its host as long as it does something, and until it is up or has ended', async () => {
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
    // So often that it has been seen at work.
    await expect.poll(() => busy.looks).toBeGreaterThan(3);
    expect(isOver).toBe(false);
    await listen(port);
    await starting;
  });

  test('does not use its host for longer than 60 s, whatever it does', async () => {
    const busy = new Starting(SECOND);
    const progress = new StartProgress(busy.containers);
    vi.spyOn(progress, 'idleForMs').mockResolvedValue(0);
    const starting = waitWhileStarting(
      busy.containers,
      progress,
      agentId,
      gatewayAt(await freePort()),
    );
    await expect.poll(() => busy.looks).toBeGreaterThan(1);
    const now = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => now() + 61 * SECOND);
    await starting.finally(() => later.mockRestore());
  });
});
