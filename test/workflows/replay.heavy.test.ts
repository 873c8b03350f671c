import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { DefaultLogger, Runtime, Worker, type ReplayWorkerOptions } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { beforeAll, describe, expect, test } from 'vitest';
import * as workflows from '../../workflows/index.js';
import { historyFromText } from './support/kept-history.js';
import { bundleWorkflows } from './support/workflow-lab.js';

const FOLDER = path.join(import.meta.dirname, 'histories');
const FILES = readdirSync(FOLDER).filter((file) => file.endsWith('.json'));
const read = (file: string) => readFileSync(path.join(FOLDER, file), 'utf8');

let options: ReplayWorkerOptions;
beforeAll(async () => {
  Runtime.install({
    logger: new DefaultLogger('ERROR', () => undefined), // the test expects a violation
    telemetryOptions: { logging: { filter: 'OFF', forward: {} } },
  });
  options = { workflowBundle: await bundleWorkflows() };
});

const replay = (kept: string) => Worker.runReplayHistory(options, historyFromText(kept));

describe('stored histories', () => {
  test.each(Object.keys(workflows))('a stored history exists for %s', (workflow) => {
    expect(FILES.filter((file) => startedType(read(file)) === workflow)).not.toEqual([]);
  });

  test.each(FILES)('the stored history %s replays', async (file) => {
    await replay(read(file));
  });

  test('a history with a renamed step does not replay', async () => {
    const kept = FILES.map(read).find((history) => history.includes('"createNetwork"'));
    const altered = kept?.replaceAll('"createNetwork"', '"makeNetwork"') ?? '';
    await expect(replay(altered)).rejects.toBeInstanceOf(DeterminismViolationError);
  });
});

function startedType(kept: string): string | null | undefined {
  const [started] = historyFromText(kept).events ?? [];
  return started?.workflowExecutionStartedEventAttributes?.workflowType?.name;
}
