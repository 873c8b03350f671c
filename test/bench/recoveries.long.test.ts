import { beforeAll, describe, expect, test } from 'vitest';
import { canHaveOwnEngine } from '../support/own-engine.js';
import { buildPrograms } from '../support/run-program.js';
import { bench, rowOf } from './run-benchmark.js';

/** Processes inside containers are killed from outside, which requires root. */
const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

beforeAll(buildPrograms);

describe('each recovery benchmark runs separately and prints its times beside the target', () => {
  // These two mostly wait, each with its own engine.
  const waiting = { concurrent: true };
  test.runIf(isRoot)('detect', waiting, async () => {
    const output = await bench('detect', ['--rounds=1', '--agents=3', '--away=0', '--interval=1s']);
    const [detections = '', recoveries = ''] = output.split('From detected to healthy');
    for (const name of ['docker kill', 'kill -9 of the gateway', 'hang']) {
      const [, median, p99, aim] = rowOf(detections, name);
      expect(Number(median)).toBeGreaterThan(0);
      expect(p99).toBe(median);
      expect(aim).toBe(name === 'hang' ? '-' : '1000');
      expect(rowOf(recoveries, name)).toEqual([
        name,
        expect.any(String),
        expect.any(String),
        '5000',
      ]);
    }
  });

  test.runIf(canHaveOwnEngine)('reboot', waiting, async () => {
    const output = await bench('reboot', ['--image=small,slow', '--agents=2', '--slow=2']);
    for (const image of ['small', 'slow']) {
      const [, running, ms, , , crashLoops] = rowOf(output, image);
      expect([running, crashLoops]).toEqual(['2 of 2', '0']);
      expect(Number(ms)).toBeGreaterThan(0);
    }
    expect(rowOf(output, 'the platform')[4]).toBe('30000');
    expect(rowOf(output, 'dockerode')[1]).toBe('2 of 2');
  });
});
