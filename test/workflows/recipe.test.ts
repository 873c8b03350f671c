import { readFileSync } from 'node:fs';
import path from 'node:path';
import { DefaultLogger, Runtime, Worker, type ReplayWorkerOptions } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundleVersion, type Version } from './recipe/play.js';
import { historyFromText } from './support/kept-history.js';

const FOLDER = path.join(import.meta.dirname, 'recipe', 'histories');
const kept = (version: Version) => readFileSync(path.join(FOLDER, `${version}.json`), 'utf8');

let code: Record<Version, ReplayWorkerOptions>;
beforeAll(async () => {
  Runtime.install({
    logger: new DefaultLogger('ERROR', () => undefined), // a violation is what is tested
    telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
  });
  const [before, after] = await Promise.all([bundleVersion('before'), bundleVersion('after')]);
  code = { before: { workflowBundle: before }, after: { workflowBundle: after } };
});

const replay = (version: Version, history: string) =>
  Worker.runReplayHistory(code[version], historyFromText(history));

// docs/operations.md, "A change to a workflow", follows this example.
describe('a workflow that is changed with runs in progress', () => {
  test('takes over a run that began before the change', async () => {
    expect(kept('before')).not.toContain('isDone');
    await replay('after', kept('before'));
  });

  test('takes over a run that began after it', async () => {
    expect(kept('after')).toContain('isDone');
    await replay('after', kept('after'));
  });

  test('does not take over a run that did something else', async () => {
    const altered = kept('before').replaceAll('"send"', '"sendTwice"');
    await expect(replay('after', altered)).rejects.toBeInstanceOf(DeterminismViolationError);
  });

  test('cannot be changed back for a run that has taken the new way', async () => {
    await expect(replay('before', kept('after'))).rejects.toBeInstanceOf(DeterminismViolationError);
  });
});
