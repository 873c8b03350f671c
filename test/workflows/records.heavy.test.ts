import { Context } from '@temporalio/activity';
import { ApplicationFailure, type Payload, type PayloadCodec } from '@temporalio/common';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hang, refuse } from './support/misbehaviours.js';
import { WorkflowLab } from './support/workflow-lab.js';

let lab: WorkflowLab;
beforeEach(async () => {
  lab = await WorkflowLab.open({ shortTimeouts: true });
});
afterEach(() => lab?.close());

/** Fails on the local worker only, as when that worker reaches Temporal but not PostgreSQL. */
const failHere = () => {
  if (isHere()) throw ApplicationFailure.retryable('no connection', 'ConnectionError');
};
const hangHere = (attempt: number) => (isHere() ? hang(attempt) : undefined);
const isHere = () => Context.current().info.isLocal;

test.each([
  ['refused', failHere],
  ['not answered', hangHere],
])('a record that is %s on one worker is written by another worker', async (_, misbehaviour) => {
  const agent = lab.agent().on('beginOperation', misbehaviour).on('finishOperation', misbehaviour);
  const supervisor = await lab.supervise(agent, { desired: 'stopped' });
  await supervisor.request('stop', 'stop');
  expect(await agent.end('stop')).toBe('succeeded');
});

/** Corrupts the first result of `beginOperation`: its workflow task fails and is retried. */
class LosesFirstBegun implements PayloadCodec {
  lost = false;

  encode(payloads: Payload[]): Promise<Payload[]> {
    return Promise.resolve(payloads.map((payload) => this.#encoded(payload)));
  }

  decode(payloads: Payload[]): Promise<Payload[]> {
    return Promise.resolve(payloads);
  }

  #encoded(payload: Payload): Payload {
    if (this.lost || !payload.data || Buffer.from(payload.data).toString() !== '"begun"') {
      return payload;
    }
    this.lost = true;
    return { ...payload, data: Buffer.from('{') };
  }
}

test('a record written by a lost workflow task does not block the retried task', async () => {
  const codec = new LosesFirstBegun();
  await using site = await WorkflowLab.open({ codec });
  const agent = site.agent();
  await site.provisionAgain(agent, 'provision');
  expect(await agent.end('provision')).toBe('succeeded');
  expect(codec.lost).toBe(true);
  expect(agent.states).toEqual([
    'starting (operation)',
    'starting (operation)',
    'running (healthy)',
  ]);
});

test('a permanent failure to write a record is not retried on another worker', async () => {
  const agent = lab.agent().on('reservePort', refuse('NoPortFreeError'));
  const supervisor = await lab.supervise(agent, { desired: 'stopped' });
  await supervisor.request('start', 'start');
  expect(await agent.end('start')).toBe('failed');
  expect(agent.steps.filter((step) => step.startsWith('reservePort'))).toEqual(['reservePort']);
});
