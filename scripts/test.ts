import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runChecks, runVisibly } from './checks.js';
import { killAll } from '../dev/processes/process.js';
import { describeFailure } from '../dev/failure.js';
import { projectRoot } from '../dev/root.js';
import { say } from '../dev/report.js';
import { readSettings } from '../dev/settings.js';
import { stopping } from '../dev/processes/stopping.js';
import { removeTestRemains } from './test-containers.js';
import { startTestEngines } from './test-engines.js';
import { countTests, type TestCounts } from './test-results.js';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => stopping.abort());
}
process.exit(await main(process.argv.slice(2)));

/** @param filters files to run, as vitest takes them; all, and the checks, when there are none. */
async function main(filters: string[]): Promise<number> {
  const checks = filters.length === 0 ? await runChecks() : { passed: [], failed: [] };
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-test-'));
  chmodSync(folder, 0o711); // root's PostgreSQL runs as another user, who must pass
  const cleanups: (() => Promise<void>)[] = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 3 }),
    killAll,
  ];
  const suite = randomUUID();
  let tests: TestCounts = { passed: 0, failed: 1, skipped: [] };
  let vitest = 1;
  try {
    const engines = await startTestEngines(folder, readSettings(process.env), cleanups);
    const { DOCKER_HOST: docker } = engines;
    if (docker !== undefined) {
      cleanups.push(async () => {
        const removed = await removeTestRemains(docker, suite);
        if (removed > 0) say(`Removed ${removed} things that tests had left on the Docker engine.`);
      });
    }
    const report = path.join(folder, 'report.json');
    vitest = await runVitest(filters, report, { ...engines, TEST_SUITE: suite });
    if (existsSync(report)) tests = countTests(report);
  } catch (error) {
    if (!stopping.signal.aborted) say(describeFailure(error));
  }
  for (const cleanup of cleanups.reverse()) {
    try {
      await cleanup();
    } catch (error) {
      say(`Cleaning up: ${describeFailure(error)}`);
      vitest ||= 1;
    }
  }
  return report(checks, tests, vitest);
}

async function runVitest(
  filters: readonly string[],
  reportFile: string,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const program = path.join(projectRoot, 'node_modules', 'vitest', 'vitest.mjs');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  return runVisibly([program, 'run', ...reporters, ...filters], { ...process.env, ...env });
}

function report(
  checks: { passed: readonly string[]; failed: readonly string[] },
  tests: TestCounts,
  vitest: number,
): number {
  for (const name of checks.failed) say(`Failed: the check of ${name}`);
  for (const name of tests.skipped) say(`Skipped: ${name}`);
  const failed = tests.failed + checks.failed.length;
  const passed = tests.passed + checks.passed.length;
  const skippedInCi = process.env.CI !== undefined && tests.skipped.length > 0;
  say(`${passed} passed, ${failed} failed, ${tests.skipped.length} skipped`);
  return failed > 0 || vitest !== 0 || skippedInCi ? 1 : 0;
}
