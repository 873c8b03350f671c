import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBusActivities, createBusRecordActivities } from '../../activities/bus.js';
import { HostBusyError, NotDeliveredError, type BusOutcome } from '../../src/bus/bus-delivery.js';
import { busRun } from './support/bus-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

/** The calls of one run. */
class Calls {
  readonly made: string[] = [];

  async run(deliver: (attempt: number) => Promise<BusOutcome>) {
    let attempt = 0;
    const records = createBusRecordActivities({
      route: (id) => this.#note(`route ${id}`),
      giveUp: async (id) => {
        await this.#note(`give up ${id}`);
        return 'dead';
      },
    });
    const posts = createBusActivities({
      async deliver() {
        return deliver(++attempt);
      },
    });
    const { result, workflowId } = await busRun(lab.environment, bundle, records, posts);
    return { result, workflowId, attempts: attempt, id: workflowId.slice('bus-message-'.length) };
  }

  async #note(call: string): Promise<void> {
    this.made.push(call);
    return Promise.resolve();
  }
}

const refused = () =>
  Promise.reject(new NotDeliveredError('The receiver answered with status 500'));

test('a message is routed once, and delivered when its receiver accepts it', async () => {
  const calls = new Calls();
  const run = await calls.run((attempt) =>
    attempt < 8 ? refused() : Promise.resolve('delivered'),
  );
  expect([run.result, run.attempts]).toEqual(['delivered', 8]);
  expect(calls.made).toEqual([`route ${run.id}`]);
});

test('a message is dead after a day of attempts, at most half an hour apart', async () => {
  const calls = new Calls();
  const run = await calls.run(refused);
  expect(run.result).toBe('dead');
  expect(calls.made).toEqual([`route ${run.id}`, `give up ${run.id}`]);
  const handle = lab.environment.client.workflow.getHandle(run.workflowId);
  const { closeTime, startTime } = await handle.describe();
  const hours = (Number(closeTime) - startTime.getTime()) / 3_600_000;
  expect(hours).toBeGreaterThan(23);
  expect(hours).toBeLessThan(25);
  expect(run.attempts).toBeGreaterThan(48);
  expect(run.attempts).toBeLessThan(62);
});

test('a message for a busy host is tried again at once', async () => {
  const calls = new Calls();
  const run = await calls.run((attempt) =>
    attempt < 30 ? Promise.reject(new HostBusyError()) : Promise.resolve('delivered'),
  );
  expect(run.result).toBe('delivered');
  const handle = lab.environment.client.workflow.getHandle(run.workflowId);
  const { closeTime, startTime } = await handle.describe();
  expect(Number(closeTime) - startTime.getTime()).toBeLessThan(5 * 60_000);
});

test.each(['dead', 'settled'] as const)('a message with the result %s has ended', async (end) => {
  const calls = new Calls();
  const run = await calls.run(() => Promise.resolve(end));
  expect([run.result, run.attempts]).toEqual([end, 1]);
  expect(calls.made).toHaveLength(1);
});
