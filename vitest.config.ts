import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Tiers, by the last part of a test file's name (docs/testing.md). `fast` needs PostgreSQL, Temporal or
 * a chain at most; files without a tier belong to it.
 */
const TIERS = ['isolated', 'heavy', 'docker', 'slow', 'long'];

/**
 * Test files that take longest, so that none runs alone at the end, after `test/workspace/`: its tests
 * start git hundreds of times, and each start copies the tables of the parent's memory, still small then.
 */
const FIRST = [
  'test/workspace/',
  'test/bench/benchmarks.long.test.ts',
  'test/chaos/chaos-work.long.test.ts',
  'test/chaos/chaos-long.long.test.ts',
  'test/e2e/tour.long.test.ts',
  'test/e2e/kill.long.test.ts',
  'test/bench/recoveries.long.test.ts',
  'test/chaos/chaos.long.test.ts',
  'test/e2e/two-hosts.long.test.ts',
  'test/e2e/own-engine.long.test.ts',
  'test/chaos/chaos-money.long.test.ts',
  'test/e2e/temporal-away.long.test.ts',
  'test/dev/start-faults.long.test.ts',
  'test/dev/start-tours.long.test.ts',
  'test/billing/random-orders.long.test.ts',
  'test/dev/clean.long.test.ts',
  'test/agents/lifecycle/update.long.test.ts',
  'test/agents/watchdog/watchdog.long.test.ts',
  'test/fuzz/fuzz.long.test.ts',
  'test/dev/start.slow.test.ts',
  'test/docker/containers/openclaw.docker.test.ts',
  'test/agents/lifecycle/lifecycle.docker.test.ts',
  'test/agents/lifecycle/isolation.docker.test.ts',
  'test/workflows/watchdog.heavy.test.ts',
  'test/workflows/operations.long.test.ts',
];

/** Hashes passwords in 8 ms instead of 240, and API keys in 2 instead of 70: tests make hundreds. */
const CHEAP_HASHES = {
  find: /^\.\/hash-cost\.js$/,
  replacement: path.resolve('test/support/hash-cost.ts'),
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const file = path.relative(project.config.root, moduleId);
      const place = FIRST.findIndex((each) => file.startsWith(each));
      return place >= 0 ? place : FIRST.length;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    tags: [
      { name: 'attack', description: 'Acts as a stranger, or as a tenant who exceeds its rights' },
    ],
    sequence: { sequencer: LongestFirst },
    // The tests' own provider warns that it is not for production.
    onConsoleLog: (log) => !log.includes('oidc-provider WARNING'),
    expect: { poll: { timeout: 30_000, interval: 100 } },
    projects: [
      // The groups run one after the other. From the second group on, networks of containers, which are
      // addresses of the host, are created and removed; tests that wait and tests that compute share the
      // second.
      project('fast', { group: 0, maxWorkers: 5, isolate: false }),
      project('isolated', { group: 0, maxWorkers: 5, isolate: true }),
      project('heavy', { group: 0, maxWorkers: 5, isolate: false }),
      project('docker', { group: 1, maxWorkers: 5, isolate: false }),
      project('slow', { group: 1, maxWorkers: 5, isolate: true }),
      project('long', { group: 2, maxWorkers: 3, isolate: true, hangsMs: 900_000 }),
    ],
  },
});

interface Tier {
  readonly group: number;
  readonly maxWorkers: number;
  /** False if the files share processes, which read the libraries once. */
  readonly isolate: boolean;
  /** Milliseconds after which a test hangs; a test that the product makes longer names its own limit. */
  readonly hangsMs?: number;
}

/** Returns the project of a tier. */
function project(name: string, { group, hangsMs = 120_000, ...running }: Tier) {
  const include = [`test/**/*${name === 'fast' ? '' : `.${name}`}.test.ts`];
  const exclude = name === 'fast' ? TIERS.map((tier) => `test/**/*.${tier}.test.ts`) : [];
  const sequence = { groupOrder: group };
  const alias = name === 'isolated' ? [] : [CHEAP_HASHES];
  return {
    extends: true,
    test: {
      name,
      include,
      exclude,
      ...running,
      sequence,
      alias,
      testTimeout: hangsMs,
      hookTimeout: hangsMs,
    },
  } as const;
}
