import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OpenVerification } from '../../src/agents/verification/verification-store.js';
import { HOST, verificationRun } from './support/verification-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

/** Open verifications of one agent in order, and the calls of a run. */
class Calls {
  readonly made: string[] = [];
  readonly #open: string[];

  constructor(...open: string[]) {
    this.#open = open;
  }

  readonly records = {
    openVerification: (agentId: string): Promise<OpenVerification | undefined> => {
      const [id] = this.#open;
      const agent = { agentId, userId: 'user', host: HOST };
      return Promise.resolve(id === undefined ? undefined : { id, agent });
    },
    finishVerification: ({ id }: OpenVerification) => this.#end(`finish ${id}`),
    failVerification: (id: string) => this.#end(`fail ${id}`),
  };

  /** Measures at once. False, as for a verification that was cancelled, ends it. */
  readonly measuring = (isOpen = true) => ({
    measureAgent: async ({ id }: OpenVerification) => {
      this.made.push(`measure ${id}`);
      if (!isOpen) this.#open.shift();
      return Promise.resolve(isOpen);
    },
  });

  readonly signing = {
    signAttestation: (id: string) => {
      this.made.push(`sign ${id}`);
      return Promise.resolve(true);
    },
  };

  #end(call: string): Promise<void> {
    this.made.push(call);
    this.#open.shift();
    return Promise.resolve();
  }
}

async function secondsOf(workflowId: string): Promise<number> {
  const handle = lab.environment.client.workflow.getHandle(workflowId);
  const { closeTime, startTime } = await handle.describe();
  return (Number(closeTime) - startTime.getTime()) / 1_000;
}

test('a verification is measured, signed and made current, in this order', async () => {
  const calls = new Calls('a');
  const { records, signing: payments } = calls;
  const parts = { records, payments, host: calls.measuring() };
  const { result } = await verificationRun(lab.environment, bundle, parts);
  expect([result, calls.made]).toEqual([1, ['measure a', 'sign a', 'finish a']]);
});

test('a run without an open verification ends at once', async () => {
  const { records } = new Calls();
  expect(await verificationRun(lab.environment, bundle, { records })).toMatchObject({ result: 0 });
});

test('a verification becomes current without an attestation after 10 s without the payments process', async () => {
  const calls = new Calls('a');
  const parts = { records: calls.records, host: calls.measuring() };
  const { result, workflowId } = await verificationRun(lab.environment, bundle, parts);
  expect([result, calls.made]).toEqual([1, ['measure a', 'finish a']]);
  const seconds = await secondsOf(workflowId);
  expect(seconds).toBeGreaterThanOrEqual(10);
  expect(seconds).toBeLessThan(15);
});

test.each([
  ['has no key', () => Promise.resolve(false)],
  ['fails each time', () => Promise.reject(new Error('PostgreSQL is away'))],
])(
  'a verification becomes current although the payments process %s',
  async (_, signAttestation) => {
    const calls = new Calls('a');
    const parts = {
      records: calls.records,
      host: calls.measuring(),
      payments: { signAttestation },
    };
    const { result, workflowId } = await verificationRun(lab.environment, bundle, parts);
    expect([result, calls.made]).toEqual([1, ['measure a', 'finish a']]);
    expect(await secondsOf(workflowId)).toBeLessThan(15);
  },
);

test('a verification fails after 20 s without its host', async () => {
  const calls = new Calls('a');
  const { records, signing: payments } = calls;
  const { result, workflowId } = await verificationRun(lab.environment, bundle, {
    records,
    payments,
  });
  expect([result, calls.made]).toEqual([1, ['fail a']]);
  const seconds = await secondsOf(workflowId);
  expect(seconds).toBeGreaterThanOrEqual(20);
  expect(seconds).toBeLessThan(25);
});

test('a verification of a removed agent fails at once', async () => {
  const calls = new Calls('a');
  const gone = () =>
    Promise.reject(ApplicationFailure.nonRetryable('The agent no longer exists', 'AgentGoneError'));
  const parts = { records: calls.records, host: { measureAgent: gone } };
  const { workflowId } = await verificationRun(lab.environment, bundle, parts);
  expect(calls.made).toEqual(['fail a']);
  expect(await secondsOf(workflowId)).toBeLessThan(5);
});

test('a measurement is repeated while Docker does not answer', async () => {
  const calls = new Calls('a');
  const { measureAgent } = calls.measuring();
  let attempts = 0;
  const host = {
    measureAgent: (open: OpenVerification) =>
      ++attempts < 4 ? Promise.reject(new Error('Docker is away')) : measureAgent(open),
  };
  const parts = { records: calls.records, payments: calls.signing, host };
  await verificationRun(lab.environment, bundle, parts);
  expect(calls.made).toEqual(['measure a', 'sign a', 'finish a']);
});

test('a verification that was cancelled is neither signed nor made current, and the next one runs', async () => {
  const calls = new Calls('a', 'b');
  const [cancelled, open] = [calls.measuring(false), calls.measuring()];
  const host = {
    measureAgent: (each: OpenVerification) =>
      each.id === 'a' ? cancelled.measureAgent(each) : open.measureAgent(each),
  };
  const parts = { records: calls.records, payments: calls.signing, host };
  const { result } = await verificationRun(lab.environment, bundle, parts);
  expect([result, calls.made]).toEqual([2, ['measure a', 'measure b', 'sign b', 'finish b']]);
});
