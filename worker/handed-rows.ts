import type { Database } from '../src/platform/database/database.js';
import { settleMail } from '../src/accounts/mail-delivery/mail-sender.js';
import type { BusSigner } from '../src/bus/bus-signer.js';
import type { SessionOpenings } from '../src/money/sessions/session-openings.js';
import type { SessionSettlements } from '../src/money/sessions/session-settlements.js';
import { signerOf } from '../src/money/payments/payment-store.js';
import type { ChainSigners } from '../temporal/chain-signers.js';
import type { SwarmStore } from '../src/swarms/swarm-store.js';
import type { VideoStore } from '../src/videos/video-store.js';
import type { RowRuns, SwarmRuns, VideoRuns } from '../temporal/row-runs.js';
import type { OpenTaskRun } from '../temporal/task-runs.js';
import type { Handed } from './hand-over.js';

/** Requested mails; dropped after a day. */
export const mails = (database: Database, runs: RowRuns): Handed => ({
  table: 'mails',
  key: 'id',
  open: `settled_at IS NULL AND requested_at > now() - interval '1 day'`,
  again: '5 minutes',
  failure: 'mails could not be handed over, retrying',
  async start(id) {
    // Its run ended without settling the mail, because it was terminated.
    if (!(await runs.start(id))) await settleMail(database, id);
  },
});

export const securityEvents = (runs: RowRuns): Handed => ({
  table: 'risc_events',
  key: 'id',
  open: 'applied_at IS NULL',
  again: '1 minute',
  failure: 'security events could not be handed over, retrying',
  start: (id) => runs.start(id),
});

export const processorEvents = (runs: RowRuns): Handed => ({
  table: 'processor_events',
  key: 'id',
  open: 'applied_at IS NULL',
  again: '1 minute',
  failure: "the payment processor's events could not be handed over, retrying",
  start: (id) => runs.start(id),
});

/** A row is deleted with its account. */
export const accountDeletions = (runs: RowRuns): Handed => ({
  table: 'account_deletions',
  key: 'user_id',
  open: 'true',
  again: '30 seconds',
  failure: 'account deletions could not be handed over, retrying',
  start: (userId) => runs.start(userId, { owner: userId }),
});

/** Milliseconds for which payments are left to a paying run, which claims them without being woken. */
const CLAIMING_MS = 25;

/** Pending payments, until the signer's run acknowledges them. */
export const payments = (database: Database, signers: Pick<ChainSigners, 'wake'>): Handed => ({
  table: 'payments',
  key: 'id',
  open: 'settled_at IS NULL',
  again: '1 minute',
  failure: 'payments could not be handed over, retrying',
  patienceMs: CLAIMING_MS,
  // For a wallet that two accounts have imported, the account whose key is opened.
  owner: `(SELECT user_id FROM wallets WHERE address = payments.signer AND sealed_key IS NOT NULL
            ORDER BY created_at, id LIMIT 1)`,
  start: async (id, { owner }) => signers.wake(await signerOf(database, id), owner),
});

export const clones = (runs: RowRuns): Handed => ({
  table: 'clones',
  key: 'id',
  open: `state = 'waiting'`,
  again: '1 minute',
  failure: 'clones could not be handed over, retrying',
  owner: 'user_id',
  start: (id, how) => runs.start(id, how),
});

/**
 * Splits with payments that can still be made. A retry at the moment when the run ends is picked up one
 * interval later.
 */
export const royaltySplits = (runs: RowRuns): Handed => ({
  table: 'royalty_splits',
  key: 'id',
  open: `status IN ('queued', 'processing')`,
  again: '20 seconds',
  failure: 'splits could not be handed over, retrying',
  owner: 'user_id',
  start: (id, how) => runs.start(id, how),
});

/** Queued messages whose predecessor of the same pair was tried: the others are due later. */
export const busMessages = (runs: RowRuns): Handed => ({
  table: 'bus_messages',
  key: 'id',
  open: `status = 'queued'`,
  again: '5 minutes',
  failure: 'messages of the bus could not be handed over, retrying',
  owner: 'to_user',
  start: (id, how) => runs.start(id, how),
});

/** Texts that wallets are to sign; requests wait ten seconds for them. */
export const busSignatures = (signer: Pick<BusSigner, 'step'>): Handed => ({
  table: 'bus_signatures',
  key: 'id',
  open: `signature IS NULL AND created_at > now() - interval '1 minute'`,
  again: '20 seconds',
  failure: 'messages of the bus could not be signed, retrying',
  owner: 'user_id',
  start: (id) => signer.step(id),
});

/** Verifications of agents; at most one of an agent is open. */
export const verifications = (runs: RowRuns): Handed => ({
  table: 'agent_verifications',
  key: 'agent_id',
  open: `state IN ('measuring', 'signing')`,
  again: '20 seconds',
  failure: 'verifications could not be handed over, retrying',
  owner: 'user_id',
  start: (agentId, how) => runs.start(agentId, how),
});

/** Swarms whose run may still have work; the run of a cancelled one sends no further question. */
export const swarms = (store: Pick<SwarmStore, 'openOf'>, runs: SwarmRuns): Handed => ({
  table: 'swarms',
  key: 'id',
  open: 'settled_at IS NULL',
  again: '20 seconds',
  failure: 'swarms could not be handed over, retrying',
  owner: 'user_id',
  async start(id, how) {
    const open = await store.openOf(id);
    if (!open) return;
    await (open.status === 'cancelled' ? runs.cancel(id, open.round, how) : runs.start(id, how));
  },
});

/** E-mails to agents that are not settled. */
export const agentEmails = (runs: RowRuns): Handed => ({
  table: 'agent_emails',
  key: 'id',
  open: 'settled_at IS NULL',
  again: '5 minutes',
  failure: 'e-mails to agents could not be handed over, retrying',
  owner: 'user_id',
  agent: 'agent_id',
  start: (id, how) => runs.start(id, how),
});

/** Unfinished videos; the run of a changed one checks its prediction at once. */
export const videos = (store: Pick<VideoStore, 'needsCheck'>, runs: VideoRuns): Handed => ({
  table: 'videos',
  key: 'id',
  open: 'settled_at IS NULL',
  again: '1 minute',
  failure: 'videos could not be handed over, retrying',
  owner: 'user_id',
  agent: 'agent_id',
  start: async (id, how) =>
    (await store.needsCheck(id)) ? runs.change(id, how) : runs.start(id, how),
});

/** Runs of tasks that are open; a run that a schedule started is handed over if its workflow was lost. */
export const taskRuns = (
  database: Database,
  start: (run: OpenTaskRun) => Promise<void>,
): Handed => ({
  table: 'scheduled_task_runs',
  key: 'id',
  open: `status = 'running'`,
  again: '5 minutes',
  failure: 'runs of tasks could not be handed over, retrying',
  owner: 'user_id',
  async start(id) {
    const [run] = await database
      .asPlatform()
      .query<{ taskId: string; agentId: string; userId: string }>(
        `SELECT task_id AS "taskId", agent_id AS "agentId", user_id AS "userId"
           FROM scheduled_task_runs WHERE id = $id`,
        { id },
      );
    if (run) await start({ id, taskId: run.taskId, agent: run });
  },
});

export const paymentSessions = ({ openings, settlements }: SessionSteps): Handed => ({
  table: 'payment_sessions',
  key: 'id',
  open: `(state IN ('opening', 'settling') OR settlement_due_at <= now())`,
  again: '20 seconds',
  failure: 'the next step of payment sessions failed, retrying',
  async start(id) {
    await openings.step(id);
    await settlements.step(id);
  },
});

interface SessionSteps {
  readonly openings: Pick<SessionOpenings, 'step'>;
  readonly settlements: Pick<SessionSettlements, 'step'>;
}
