import { describe, expect, test } from 'vitest';
import { healthOf, hostHealth } from '../../../src/platform/health/host-health.js';

describe("the machine's health", () => {
  test.each([
    [0, 0, 'healthy'],
    [70, 70, 'healthy'],
    [70.1, 10, 'degraded'],
    [10, 70.1, 'degraded'],
    [85, 85, 'degraded'],
    [85.1, 10, 'unhealthy'],
    [10, 85.1, 'unhealthy'],
    [100, 100, 'unhealthy'],
  ] as const)(
    'with %d %% of the cores and %d %% of memory in use, the machine is %s',
    (cpu, memory, health) => {
      expect(healthOf(cpu, memory)).toBe(health);
    },
  );

  test("measures the machine's health once for concurrent calls", async () => {
    const first = hostHealth();
    expect(hostHealth()).toBe(first);
    const measured = await first;
    expect(measured?.memory.used).toBeLessThanOrEqual(measured?.memory.total ?? 0);
    expect(measured?.cpu.cores).toBeGreaterThan(0);
  });
});
