import type { Database } from '../src/platform/database/database.js';
import { settleMail } from '../src/accounts/mail-delivery/mail-sender.js';
import { isSignedHere } from '../src/money/sessions/session-holds.js';
import { signerOf } from '../src/money/payments/payment-store.js';
import type { ChainSigners } from '../temporal/chain-signers.js';
import type { RowRuns } from '../temporal/row-runs.js';
import type { Handed } from './hand-over.js';

/** Mails that were asked for. After a day they are given up. */
export const mails = (database: Database, runs: RowRuns): Handed => ({
  table: 'mails',
  key: 'id',
  open: `settled_at IS NULL AND requested_at > now() - interval '1 day'`,
  again: '5 minutes',
  failure: 'mail is not handed over yet, which is tried again',
  async start(id) {
    // Its run has ended without a word: somebody has ended it.
    if (!(await runs.start(id))) await settleMail(database, id);
  },
});

/** What the identity provider has told of, until it is applied. */
export const securityEvents = (runs: RowRuns): Handed => ({
  table: 'risc_events',
  key: 'id',
  open: 'applied_at IS NULL',
  again: '1 minute',
  failure: 'security events are not handed over yet, which is tried again',
  start: (id) => runs.start(id),
});

/** Accounts that their owners delete: a row goes with the account. */
export const accountDeletions = (runs: RowRuns): Handed => ({
  table: 'account_deletions',
  key: 'user_id',
  open: 'true',
  again: '30 seconds',
  failure: 'a deletion of an account is not handed over yet, which is tried again',
  start: (userId) => runs.start(userId, { owner: userId }),
});

/** For how long payments are left to a run that pays already, and claims them: it need not be woken. */
const CLAIMING_MS = 25;

/** What is to be paid, until it is: the run of whoever signs says that it has it. */
export const payments = (database: Database, signers: Pick<ChainSigners, 'wake'>): Handed => ({
  table: 'payments',
  key: 'id',
  open: 'settled_at IS NULL',
  again: '1 minute',
  failure: 'payments are not handed over yet, which is tried again',
  patienceMs: CLAIMING_MS,
  // Of a wallet that two accounts have imported it is whose key is opened.
  owner: `(SELECT user_id FROM wallets WHERE address = payments.signer AND sealed_key IS NOT NULL
            ORDER BY created_at, id LIMIT 1)`,
  start: async (id, owner) => signers.wake(await signerOf(database, id), owner),
});

/** Clones whose payment is not known to be final yet. */
export const clones = (runs: RowRuns): Handed => ({
  table: 'clones',
  key: 'id',
  open: `state = 'waiting'`,
  again: '1 minute',
  failure: 'clones are not handed over yet, which is tried again',
  owner: 'user_id',
  start: (id, owner) => runs.start(id, { owner }),
});

/** Splits of which not all is paid that can be. One that is retried just when its run ends waits longer. */
export const royaltySplits = (runs: RowRuns): Handed => ({
  table: 'royalty_splits',
  key: 'id',
  open: `status IN ('queued', 'processing')`,
  again: '20 seconds',
  failure: 'splits are not handed over yet, which is tried again',
  owner: 'user_id',
  start: (id, owner) => runs.start(id, { owner }),
});

/**
 * For how long the run of a session leaves it to whoever waits for it (`SessionHaste`), in milliseconds: beside
 * that, it would only take its time.
 */
const HASTE_MS = 1_000;

/** Payment sessions that are being opened or closed, or of which something is to be settled. */
export const paymentSessions = (database: Database, runs: RowRuns): Handed => ({
  table: 'payment_sessions',
  key: 'id',
  open: `(state IN ('opening', 'settling') OR settlement_due_at <= now())`,
  again: '20 seconds',
  failure: 'payment sessions are not handed over yet, which is tried again',
  owner: 'address',
  start: async (id, owner) =>
    runs.start(id, { owner, afterMs: (await isSignedHere(database, id)) ? undefined : HASTE_MS }),
});
