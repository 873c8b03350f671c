import { randomUUID } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runChecks, type Checked } from './checks.js';
import { onNpmEnd } from '../dev/processes/npm-end.js';
import { filesBelow } from '../dev/files-below.js';
import { endLeftovers, killAll } from '../dev/processes/process.js';
import { findLabelled, removeLabelled } from '../dev/docker/labelled.js';
import { describeFailure } from '../dev/failure.js';
import { say } from '../dev/report.js';
import { readSettings } from '../dev/settings.js';
import { stopping } from '../dev/processes/stopping.js';
import { startTestServers } from './test-servers.js';
import { attackFiles } from './attack-files.js';
import { runVitest, type Tested } from './run-vitest.js';

/** Tiers of tests (docs/testing.md): projects of vitest.config.ts. */
const FAST = ['fast', 'isolated'];
const NORMAL = [...FAST, 'heavy', 'docker', 'slow'];
const LONG = ['long'];

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => stopping.abort());
}
onNpmEnd(() => stopping.abort());
process.exit(await main(process.argv.slice(2)));

/**
 * Runs tests, and without files the checks of the sources beside them.
 *
 * @param args `--fast` for tests without containers, `--long` for the long tier, `--attacks` for tests
 *   that play an attacker, and files to run, in vitest's form, of any tier.
 */
async function main(args: string[]): Promise<number> {
  const isFast = args.includes('--fast');
  const isLong = args.includes('--long');
  const isAttack = args.includes('--attacks');
  const files = args.filter((arg) => !['--fast', '--long', '--attacks'].includes(arg));
  const filters = isAttack ? ['--tags-filter=attack', ...(await attackFiles())] : files;
  const checking =
    filters.length === 0 && !isLong
      ? runChecks(isFast)
      : Promise.resolve({ passed: [], failed: [] });
  const folder = await mkdtemp(path.join(tmpdir(), 'aps-test-'));
  chmodSync(folder, 0o711); // root's PostgreSQL runs as another user, who must traverse the folder.
  const cleanups: (() => Promise<void>)[] = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 3 }),
    killAll,
  ];
  const suite = randomUUID();
  const temporary = await mkdtemp(path.join(folder, 't-'));
  chmodSync(temporary, 0o711);
  const none = { passed: 0, failed: 1, skipped: [] };
  let tested: Tested = { tests: none, failed: [], flaky: [], code: 1 };
  try {
    const settings = readSettings(process.env);
    const servers = await startTestServers({ folder, settings, withDocker: !isFast }, cleanups);
    const { DOCKER_HOST: docker } = servers;
    if (docker !== undefined) {
      cleanups.push(async () => {
        // Tests put this label on all that they create; another `npm test` uses another value.
        const remains = await findLabelled(docker, `test-suite=${suite}`);
        await removeLabelled(docker, remains);
        const { length } = remains;
        if (length > 0) say(`Removed ${length} objects that tests had left on the Docker engine.`);
      });
    }
    cleanups.push(() => endServers(temporary));
    const environment = { ...servers, TEST_SUITE: suite, TMPDIR: temporary };
    const projects = tiersOf({ isFast, isLong, isFiltered: filters.length > 0 });
    const options = projects.map((name) => `--project=${name}`);
    tested = await runVitest([...options, ...filters], folder, environment);
    // Tests outside of the selection do not count as skipped.
    if (isAttack) tested = { ...tested, tests: { ...tested.tests, skipped: [] } };
  } catch (error) {
    if (!stopping.signal.aborted) say(describeFailure(error));
  }
  for (const cleanup of cleanups.reverse()) {
    try {
      await cleanup();
    } catch (error) {
      say(`Clean-up failed: ${describeFailure(error)}`);
      tested = { ...tested, code: tested.code || 1 };
    }
  }
  return report(await checking, tested);
}

/** Returns the tiers to run: named files and attackers are of any tier. */
function tiersOf(run: {
  readonly isFast: boolean;
  readonly isLong: boolean;
  readonly isFiltered: boolean;
}): readonly string[] {
  if (run.isFast) return FAST;
  if (run.isLong) return LONG;
  return run.isFiltered ? [] : NORMAL;
}

/** Ends servers that tests left running, found by the records in the tests' folders. */
async function endServers(temporary: string): Promise<void> {
  const records = (await filesBelow(temporary)).filter(({ name }) =>
    name.endsWith('.process.json'),
  );
  for (const runDir of new Set(records.map(({ parentPath }) => parentPath))) {
    const ended = await endLeftovers(runDir);
    if (ended.length > 0) say(`Ended servers that tests had left running: ${ended.join(', ')}.`);
  }
}

/** Prints the failures last, a line each, where readers of a long log start. */
function report(checks: Checked, { tests, failed, flaky, code }: Tested): number {
  for (const { name, output } of checks.failed) say(`${output}\nFailed: the check of ${name}`);
  for (const name of tests.skipped) say(`Skipped: ${name}`);
  const failures = tests.failed + checks.failed.length;
  const passed = tests.passed + checks.passed.length;
  const skippedInCi = process.env.CI !== undefined && tests.skipped.length > 0;
  say(`${passed} passed, ${failures} failed, ${tests.skipped.length} skipped`);
  for (const { name } of checks.failed) say(`FAILED check of ${name}: its output is above`);
  for (const line of failed) say(line);
  for (const line of flaky) say(line.replace(/^FAILED/, 'FLAKY, passed when run once more:'));
  return failures > 0 || code !== 0 || skippedInCi ? 1 : 0;
}
