import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Whole programs: `npm start` itself, the tour, chaos, benchmarks' smoke runs. */
const WHOLE = ['dev', 'e2e', 'chaos', 'bench'];
/** Containers, and the product in one process with all that it needs (test/support/platform.ts). */
const CONTAINERS = [
  ...['containers', 'egress', 'agent-image'],
  ...['agents', 'ai', 'backend', 'chat', 'fuzz', 'logs', 'metrics', 'web'],
];
const CONTAINERS_TOO = [
  'test/hosts/{far-host,host-operations}.test.ts',
  'test/local-repair/{taken-in,without-control-plane}.test.ts',
  'test/workspace/agent-workspace.test.ts',
];
/** What needs no containers, and stands beside what does. */
const BESIDE = [
  // Chromium gives up its connections whenever an address of the host comes or goes.
  'test/web/browser.test.ts',
  'test/agents/{agent-model,agent-subnet,memory-sizes,observe-agent,start-progress,watchdog-rules}.test.ts',
  'test/ai/providers/*.test.ts',
  'test/ai/{catalogue,circuit-breaker,demo-shares,cost,supported-request}.test.ts',
  'test/chat/{gateway,turn}.test.ts',
  'test/containers/{death-cause,docker-engine,docker-frames,environment-file,hanging-engine,helper-line,host-routes,image-name,openclaw-config,tar-filter,tar-owners}.test.ts',
  'test/dev/log-file.test.ts',
  'test/egress/{egress-rules,host-egress}.test.ts',
];

/** They put something else in the place of a library, or load a compiler, in a process of their own. */
const MOCKING = [
  'test/adding/recipes.test.ts',
  'test/contracts/compiled.test.ts',
  'test/pages/reading-bounds.test.ts',
  'test/accounts/password-work.test.ts',
  'test/usage/journal-segment.test.ts',
  'test/workspace/other-kernel.test.ts',
];

/** What takes longest, so that nothing is waited for alone at the end. */
const FIRST = [
  'test/web/browser.test.ts',
  'test/bench/benchmarks.test.ts',
  'test/dev/start.test.ts',
  'test/chaos/chaos-long.test.ts',
  'test/e2e/tour.test.ts',
  'test/e2e/kill.test.ts',
  'test/bench/recoveries.test.ts',
  'test/chaos/chaos.test.ts',
  'test/e2e/two-hosts.test.ts',
  'test/e2e/own-engine.test.ts',
  'test/chaos/chaos-money.test.ts',
  'test/dev/clean.test.ts',
  'test/containers/openclaw.test.ts',
  'test/agents/lifecycle.test.ts',
  'test/agents/update.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/agents/watchdog.test.ts',
  'test/workflows/watchdog.test.ts',
  'test/workflows/watchdog-runs.test.ts',
  'test/agents/credentials.test.ts',
  'test/agents/outages.test.ts',
  'test/accounts/theft.test.ts',
  'test/splits/pay.test.ts',
  'test/payments/faults.test.ts',
];

/**
 * They start git hundreds of times, and each start copies the tables of its parent's memory: they come
 * first, before other tests have made their processes large.
 */
const SPAWNING = 'test/workspace/';

/** Projects whose files do not share processes: they put other things in the place of libraries. */
const ISOLATED = ['mocking', 'whole'];

/**
 * What is run beside each other, in this order. Networks of containers, which are addresses of the
 * host, come and go from the second on. Whole programs come last: each is many processes, which
 * others would starve.
 */
const GROUPS = [['fast', 'mocking'], ['containers'], ['whole']];

class InOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const file = path.relative(project.config.root, moduleId);
      if (file.startsWith(SPAWNING)) return -1;
      const known = FIRST.indexOf(file);
      return known >= 0 ? known : FIRST.length;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    tags: [{ name: 'attack', description: 'Plays a stranger or a tenant who wants more' }],
    sequence: { sequencer: InOrder },
    // The tests' own provider says that it is not for production.
    onConsoleLog: (log) => !log.includes('oidc-provider WARNING'),
    // All times are for what hangs: a machine that has other work takes several times as long.
    expect: { poll: { timeout: 150_000, interval: 100 } },
    testTimeout: 600_000,
    hookTimeout: 600_000,
    projects: [
      // Beside themselves they need PostgreSQL, Temporal or a chain at most.
      project(
        'fast',
        ['test/*.test.ts', elsewhere([...CONTAINERS, ...WHOLE]), ...BESIDE],
        [...MOCKING, ...CONTAINERS_TOO],
      ),
      project('mocking', MOCKING, []),
      project('containers', [inRooms(CONTAINERS), ...CONTAINERS_TOO], BESIDE),
      project('whole', [inRooms(WHOLE)], BESIDE),
    ],
  },
});

function inRooms(rooms: string[]): string {
  return `test/{${rooms.join(',')}}/**/*.test.ts`;
}

function elsewhere(rooms: string[]): string {
  return `test/!(${rooms.join('|')})/**/*.test.ts`;
}

/** Test files that are run alike. */
function project(name: string, include: string[], exclude: string[]) {
  // Whole programs are fewer at a time. The others mostly wait, also on two cores; skipped time is
  // that of a file's own server.
  const maxWorkers = name === 'whole' ? 3 : 5;
  const sequence = { groupOrder: GROUPS.findIndex((group) => group.includes(name)) };
  // What leaves nothing behind in its process: files share one, which reads the libraries once.
  const isolate = ISOLATED.includes(name);
  const test = { name, include, exclude, maxWorkers, sequence, isolate };
  return { extends: true, test } as const;
}
