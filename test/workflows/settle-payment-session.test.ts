import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createPaymentSessionActivities,
  createSessionHoldActivities,
} from '../../activities/payment-sessions.js';
import { ChainAwayError } from '../../src/chain/chain-node.js';
import { SessionWaitsError } from '../../src/payment-sessions/session-openings.js';
import { sessionRun } from './support/session-run.js';
import { WorkflowLab, bundleWorkflows } from './support/workflow-lab.js';

let lab: WorkflowLab;
let bundle: Awaited<ReturnType<typeof bundleWorkflows>>;
beforeAll(async () => {
  lab = await WorkflowLab.open();
  bundle = await bundleWorkflows();
});
afterAll(() => lab?.close());

interface Steps {
  readonly request?: () => Promise<string | undefined>;
  readonly finish?: () => Promise<boolean>;
}

/** A session that is being opened, and what is asked for of it. */
function session({ finish, request }: Steps = {}) {
  const asked: string[] = [];
  const note = <T>(what: string, answer: T): Promise<T> => {
    asked.push(what);
    return Promise.resolve(answer);
  };
  const platform = createPaymentSessionActivities({
    finish: finish ?? (() => note('finish', true)),
  });
  const payments = {
    ...createSessionHoldActivities({ request: request ?? (() => note('request', 'the hold')) }),
    awaitPayment: (cause: string) =>
      note(`await ${cause}`, {
        state: 'confirmed' as const,
        ...{ hash: undefined, block: undefined, failure: undefined },
      }),
  };
  return { asked, note, run: () => sessionRun(lab.environment, bundle, { platform, payments }) };
}

test('the hold is asked for, waited for, and then written down', async () => {
  const { asked, run } = session();
  expect((await run()).result).toBe(true);
  expect(asked).toEqual(['request', 'await the hold', 'finish']);
});

test('what cannot be asked for is not waited for', async () => {
  const { asked, run } = session({ request: () => Promise.resolve(undefined) });
  expect((await run()).result).toBe(true);
  expect(asked).toEqual(['finish']);
});

test.each([
  ['a node that does not know of the hold yet', () => new SessionWaitsError('not there')],
  ['a chain that is away', () => new ChainAwayError()],
])('%s is waited for', async (_, reason) => {
  let attempts = 0;
  const { run } = session({
    finish: () => (++attempts < 30 ? Promise.reject(reason()) : Promise.resolve(false)),
  });
  expect((await run()).result).toBe(false);
  expect(attempts).toBe(30);
});
