import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { poll } from '../../scripts/poll.js';
import { Place, survivors } from './launcher.js';

const RUNNING = 'Ctrl-C stops everything.';

let place: Place;
beforeEach(async () => {
  place = await Place.make();
});
afterEach(() => place.close());

describe('npm start', () => {
  test('starts everything, keeps others out, stops it all, and is quick the second time', async () => {
    const first = place.start();
    await first.printed(RUNNING);
    expect(first.output).toContain(`http://127.0.0.1:${place.webPort}`);
    expect(first.output).toContain('export INTERNAL_API_KEY=');
    const running = await place.processes();
    expect(running.map(({ name }) => name).sort()).toEqual([
      'api',
      'postgres',
      'temporal',
      'worker',
    ]);

    const beside = place.start();
    expect(await beside.ended).toBe(1);
    expect(beside.output.trim().split('\n')).toHaveLength(1);
    expect(beside.output).toContain(`process ${first.pid}, at http://127.0.0.1:${place.webPort}`);

    first.kill('SIGINT');
    expect(await first.ended).toBe(0);
    expect(await survivors(running)).toEqual([]);

    const since = performance.now();
    const second = place.start();
    await second.printed(RUNNING);
    expect(performance.now() - since).toBeLessThan(10_000);
    second.kill('SIGTERM');
    expect(await second.ended).toBe(0);
  });

  test('recovers when it was killed, and leaves nothing of the killed one behind', async () => {
    const first = place.start();
    await first.printed(RUNNING);
    const old = await place.processes();
    first.kill('SIGKILL');
    await first.ended;

    const second = place.start();
    await second.printed(RUNNING);
    expect(await survivors(old)).toEqual([]);
    second.kill('SIGINT');
    expect(await second.ended).toBe(0);
  });

  test.each(['postgres', 'temporal', 'worker', 'api'])(
    'starts %s again when it is killed',
    async (name) => {
      const launcher = place.start();
      await launcher.printed(RUNNING);
      const victim = (await place.processes()).find((each) => each.name === name);
      process.kill(victim?.pid ?? 0, 'SIGKILL');
      await launcher.printed('is back.');
      launcher.kill('SIGINT');
      expect(await launcher.ended).toBe(0);
    },
  );

  test('names the variable when a port is in use, in one line', async () => {
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

  test('leaves no process behind when it is stopped half way, twice', async () => {
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
