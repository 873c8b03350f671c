import { defineConfig } from 'vitest/config';

/** Files that need no engine, or only the shared PostgreSQL and Temporal. */
const WORKFLOWS = ['test/workflows/**/*.test.ts'];
/** Whole programs: `npm start` itself, the tour, chaos, benchmarks' smoke runs. */
const WHOLE = ['test/{dev,e2e,chaos,bench}/**/*.test.ts'];
const CONTAINERS = ['test/containers/**/*.test.ts', 'test/agent-image/**/*.test.ts'];
/** The product in one process on all engines (test/support/platform.ts). */
const PLATFORM = ['test/{agents,ai,backend,chat,logs,metrics,web}/**/*.test.ts'];

/**
 * Engines of other people's making, killed and restarted on a busy machine: in CI a test that fails
 * is asked once more, and shown as retried.
 */
const retry = process.env.CI === undefined ? 0 : 1;

export default defineConfig({
  test: {
    pool: 'forks',
    retry,
    // Also on two cores: most of the time tests wait. Skipped time is that of a file's own server.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: 'units',
          include: ['test/**/*.test.ts'],
          exclude: [...WORKFLOWS, ...WHOLE, ...CONTAINERS, ...PLATFORM],
          testTimeout: 20_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'workflows',
          include: WORKFLOWS,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'containers',
          include: CONTAINERS,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'platform',
          include: PLATFORM,
          // Agents' containers are waited for: that leaves room for one more.
          maxWorkers: 3,
          testTimeout: 90_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          name: 'whole',
          include: WHOLE,
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
