import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createPaymentSessionActivities,
  createSessionHoldActivities,
  createSettlementActivities,
} from '../../activities/payment-sessions.js';
import { ChainAwayError } from '../../src/money/chain/chain-node.js';
import { SessionWaitsError } from '../../src/money/sessions/session-openings.js';
import type { SettlementStep } from '../../src/money/sessions/session-settlements.js';
import type { PaymentSessionState } from '../../src/types/payment-session-states.js';
import { signalLate, STAYS_ENDED } from './support/late-signal.js';
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
  /** Steps of the settlement after the session is opened. */
  readonly steps?: readonly SettlementStep[];
  readonly hasNoDebits?: () => Promise<boolean>;
  /** State of the session when no step is left; `active` by default. */
  readonly state?: PaymentSessionState;
}

/** Returns a session that is being opened, with the calls that its run makes. */
function session({ finish, hasNoDebits, request, state = 'active', steps = [] }: Steps = {}) {
  const asked: string[] = [];
  const note = <T>(what: string, answer: T): Promise<T> => {
    asked.push(what);
    return Promise.resolve(answer);
  };
  const left = [...steps];
  const platform = {
    ...createPaymentSessionActivities({ finish: finish ?? (() => note('finish', true)) }),
    ...createSettlementActivities({
      request: () => Promise.resolve(left.shift() ?? { next: 'nothing', state }),
      hasNoDebits: hasNoDebits ?? (() => note('look at debits', true)),
      settle: (_, cause) => note(`settle ${cause}`, undefined),
      closeAged: () => Promise.resolve(0),
    }),
  };
  const payments = {
    ...createSessionHoldActivities({ request: request ?? (() => note('request', 'the hold')) }),
    awaitPayment: (cause: string) =>
      note(`await ${cause}`, {
        state: 'confirmed' as const,
        hash: undefined,
        block: undefined,
        failure: undefined,
      }),
  };
  const run = (id?: string) => sessionRun(lab.environment, bundle, { platform, payments }, id);
  return { asked, note, run };
}

test('the hold is requested, awaited and then recorded', async () => {
  const { asked, run } = session();
  expect((await run()).result).toBe('active');
  expect(asked).toEqual(['request', 'await the hold', 'finish']);
});

test('a hold that cannot be requested is not awaited', async () => {
  const { asked, run } = session({ request: () => Promise.resolve(undefined) });
  expect((await run()).result).toBe('active');
  expect(asked).toEqual(['finish']);
});

test.each([
  ['a node that has not seen the hold yet', () => new SessionWaitsError('not there')],
  ['a chain that is away', () => new ChainAwayError()],
])('the session waits for %s', async (_, reason) => {
  let attempts = 0;
  const { run } = session({
    finish: () => (++attempts < 30 ? Promise.reject(reason()) : Promise.resolve(false)),
  });
  expect((await run()).result).toBe('failed');
  expect(attempts).toBe(30);
});

test('each due payment is awaited and recorded before the session is checked again', async () => {
  const { asked, run } = session({
    request: () => Promise.resolve(undefined),
    steps: [
      { next: 'payment', cause: 'first' },
      { next: 'payment', cause: 'second' },
      { next: 'nothing', state: 'closed' },
    ],
  });
  expect((await run()).result).toBe('closed');
  expect(asked).toEqual(['finish', 'await first', 'settle first', 'await second', 'settle second']);
});

test('a session waits for pending debits without a time limit', async () => {
  let looks = 0;
  const { asked, run } = session({
    request: () => Promise.resolve(undefined),
    hasNoDebits: () => Promise.resolve(++looks > 240),
    steps: [
      { next: 'debits' },
      { next: 'payment', cause: 'last' },
      { next: 'nothing', state: 'closed' },
    ],
  });
  const { workflowId, result } = await run();
  expect([result, looks]).toEqual(['closed', 241]);
  expect(asked).toEqual(['finish', 'await last', 'settle last']);
  const history = await lab.environment.client.workflow.getHandle(workflowId).fetchHistory();
  expect(history.events?.length).toBeLessThan(60);
});

test('a long run continues as new', async () => {
  const steps = Array.from({ length: 21 }, (): SettlementStep => ({ next: 'debits' }));
  const { asked, run } = session({ request: () => Promise.resolve(undefined), steps });
  expect((await run()).result).toBe('active');
  expect(asked.filter((what) => what === 'finish')).toHaveLength(2);
});

test.each(['closed', 'failed'] as const)(
  'a session that is %s is not reopened by a late signal or a late start',
  async (state) => {
    const id = randomUUID();
    const isOpened = state !== 'failed';
    const request = () => Promise.resolve(undefined);
    const { asked, note, run } = session({
      request,
      state,
      finish: () => note('finish', isOpened),
      // A session that was never opened settles nothing, even if its rows list payments.
      steps: isOpened ? [] : [{ next: 'payment', cause: 'of nothing' }],
    });
    const { result, workflowId } = await run(id);
    expect([result, asked]).toEqual([state, ['finish']]);
    expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
    expect([(await run(id)).result, asked]).toEqual([state, ['finish', 'finish']]);
    expect(await signalLate(lab.environment, workflowId)).toEqual(STAYS_ENDED);
  },
);
