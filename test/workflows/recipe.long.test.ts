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
    logger: new DefaultLogger('ERROR', () => undefined), // the violations are expected
    telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
  });
  const [before, after] = await Promise.all([bundleVersion('before'), bundleVersion('after')]);
  code = { before: { workflowBundle: before }, after: { workflowBundle: after } };
});

const replay = (version: Version, history: string) =>
  Worker.runReplayHistory(code[version], historyFromText(history));

// docs/operations.md, "A change to a workflow", follows this example.
describe('workflow change with runs in progress', () => {
  test('the changed workflow replays a run that began before the change', async () => {
    expect(kept('before')).not.toContain('isDone');
    await replay('after', kept('before'));
  });

  test('the changed workflow replays a run that began after the change', async () => {
    expect(kept('after')).toContain('isDone');
    await replay('after', kept('after'));
  });

  test('the changed workflow does not replay a run with different steps', async () => {
    const altered = kept('before').replaceAll('"send"', '"sendTwice"');
    await expect(replay('after', altered)).rejects.toBeInstanceOf(DeterminismViolationError);
  });

  test('the previous version does not replay a run that began after the change', async () => {
    await expect(replay('before', kept('after'))).rejects.toBeInstanceOf(DeterminismViolationError);
  });
});
