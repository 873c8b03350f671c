import { isCancellation, log, proxyActivities } from '@temporalio/workflow';
import type {
  AttestationActivities,
  MeasurementActivities,
  VerificationRecordActivities,
} from '../activities/verification.js';
import type { OpenVerification } from '../src/agents/verification/verification-store.js';
import { failureReason } from './failure-reason.js';
import { containersTaskQueue, PAYMENTS_TASK_QUEUE } from './ids.js';
import { proxyRecords } from './records.js';
import * as retries from './retries.js';

/**
 * Maximum number of verifications in one run: one that was cancelled may have a successor, which waits for
 * this run.
 */
const MAX_ROUNDS = 10;

/**
 * Carries out the open verification of an agent: measures on the agent's host, has the result attested, and
 * makes it current. Returns the number of verifications that ended in it.
 */
export async function verifyAgent(agentId: string): Promise<number> {
  const records = proxyRecords<VerificationRecordActivities>();
  for (let rounds = 0; rounds < MAX_ROUNDS; rounds++) {
    const open = await records.openVerification(agentId);
    if (!open) return rounds;
    if (await measured(open)) {
      await attested(open.id);
      await records.finishVerification(open);
    }
  }
  return MAX_ROUNDS;

  /** Measures the agent; returns false if that failed, or if the agent changed in between. */
  async function measured(open: OpenVerification): Promise<boolean> {
    const { measureAgent } = proxyActivities<MeasurementActivities>({
      ...retries.measurement,
      taskQueue: containersTaskQueue(open.agent.host),
    });
    try {
      return await measureAgent(open);
    } catch (error) {
      if (isCancellation(error)) throw error;
      log.warn('an agent could not be measured', { reason: failureReason(error) });
      await records.failVerification(open.id);
      return false;
    }
  }
}

/** Requests a signature. Without the payments process there is none, and the next verification requests it. */
async function attested(id: string): Promise<void> {
  const { signAttestation } = proxyActivities<AttestationActivities>({
    ...retries.attestation,
    taskQueue: PAYMENTS_TASK_QUEUE,
  });
  try {
    await signAttestation(id);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('a verification has no attestation', { reason: failureReason(error) });
  }
}
