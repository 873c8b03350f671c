import { Context } from '@temporalio/activity';
import type { Attester } from '../src/agents/verification/attester.js';
import { measureAgent, type Measuring } from '../src/agents/verification/measure-agent.js';
import type {
  OpenVerification,
  VerificationStore,
} from '../src/agents/verification/verification-store.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import { dockerActivity, runForOwner } from './docker-activity.js';
import { asApplicationFailure } from './failures.js';

/** Creates the activities that only read and write rows of verifications. */
export const createVerificationRecordActivities = (
  store: Pick<VerificationStore, 'fail' | 'finish' | 'open'>,
) => ({
  openVerification: (agentId: string) => asApplicationFailure(() => store.open(agentId)),
  finishVerification: (open: OpenVerification) => asApplicationFailure(() => store.finish(open)),
  failVerification: (id: string) => asApplicationFailure(() => store.fail(id)),
});

export type VerificationRecordActivities = ReturnType<typeof createVerificationRecordActivities>;

interface HostParts extends Measuring {
  readonly store: Pick<VerificationStore, 'recordMeasured'>;
  readonly limiters: Pick<HostLimiters, 'calls'>;
}

/** Creates the activity that measures an agent; runs on the agent's host. */
export const createMeasurementActivities = ({ limiters, store, ...parts }: HostParts) => ({
  /** Measures the agent and stores the result, which stays out of histories. False if it was cancelled. */
  measureAgent: ({ agent, id }: OpenVerification): Promise<boolean> =>
    dockerActivity(() =>
      runForOwner(limiters.calls, agent, async () => {
        const { cancellationSignal } = Context.current();
        return store.recordMeasured(id, await measureAgent(parts, agent, cancellationSignal));
      }),
    ),
});

export type MeasurementActivities = ReturnType<typeof createMeasurementActivities>;

/** Creates the activity of the process that has the operator's key. */
export const createAttestationActivities = (attester: Pick<Attester, 'sign'>) => ({
  /** Signs a stored measurement. False without a key. */
  signAttestation: (id: string): Promise<boolean> => asApplicationFailure(() => attester.sign(id)),
});

export type AttestationActivities = ReturnType<typeof createAttestationActivities>;
