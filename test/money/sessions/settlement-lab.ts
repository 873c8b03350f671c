import { randomUUID } from 'node:crypto';
import type { Hex } from 'viem';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import type { PaymentSessionRow } from '../../../src/platform/database/models.js';
import { paymentSessions } from '../../../src/platform/database/tables/payment-sessions.js';
import { hold, post } from '../../../src/money/ledger/ledger.js';
import type { NotifiedEvent } from '../../../src/types/notification.js';
import { sessionAccount, spentAccount, voucherCause } from '../../../src/money/sessions/causes.js';
import { openCall } from '../../../src/money/sessions/escrow.js';
import { newSessionToken, storedOf } from '../../../src/money/sessions/session-token.js';
import {
  findById,
  SessionOpenings,
  wakeSession,
} from '../../../src/money/sessions/session-openings.js';
import { SessionSettlements } from '../../../src/money/sessions/session-settlements.js';
import { ChainPayments } from '../../../src/money/payments/chain-payments.js';
import type { PaymentStatus } from '../../../src/types/payment.js';
import { Signer } from '../../../src/money/payments/signer.js';
import { Signers } from '../../../src/money/payments/signers.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { anvilAccount, anvilKey } from '../../../dev/chain/accounts.js';
import { escrowCall, escrowChain, FAR, newNonce } from '../../contracts/escrow-chain.js';
import { queryRows } from '../../platform/database/catalog.js';
import { CHAIN_ID } from '../../support/chain/chain.js';
import { insertRow } from '../../support/insert-row.js';
import { until } from '../../support/until.js';
import { keptLog } from '../../support/platform-environment.js';
import { testDatabase } from '../../support/postgres.js';

/** 1 pathUSD in base units. */
export const ONE = 1_000_000n;

const AN_HOUR_MS = 3_600_000;

export type SettlementLab = Awaited<ReturnType<typeof settlementLab>>;

/** Creates a database with sessions whose deposits are on a chain of its own. */
export async function settlementLab() {
  const [database, escrow] = await Promise.all([testDatabase(), escrowChain()]);
  const { db } = database;
  const node = new ChainNode({ chainId: CHAIN_ID, url: escrow.chain.rpcUrl });
  const payments = new ChainPayments(db);
  const { address: operator, privateKey } = anvilKey(1); // the escrow's operator
  const chain = {
    chainId: CHAIN_ID,
    node,
    confirmations: 1,
    feeBumpAfterMs: AN_HOUR_MS,
    feeLimits: feeLimitsOf(CHAIN_ID),
  };
  const kept = () => Promise.resolve(undefined);
  const keys = new SigningKeys({ address: operator, privateKey }, kept);
  const { log } = keptLog();
  const signerParts = { database: db, keys, log, onEnded: wakeSession };
  const signer = new Signer({ ...signerParts, chain, gaps: new Set<string>() }, operator);
  const settings = {
    settleIntervalMs: AN_HOUR_MS,
    settleThreshold: 10n * ONE,
    maxAgeMs: 24 * AN_HOUR_MS,
    holdMs: 48 * AN_HOUR_MS,
  };
  const parts = { database: db, payments, node, confirmations: 1, operator, settings, kept };
  const settlements = new SessionSettlements(parts);
  const owner = (sql: string) => queryRows<Record<string, unknown>>(database.ownerUrl, sql);

  const paid = (cause: string): Promise<PaymentStatus> =>
    until(async () => {
      await signer.step();
      const status = await payments.stateOf(cause);
      return status?.state === 'confirmed' || status?.state === 'failed' ? status : undefined;
    });

  async function session(id: string): Promise<PaymentSessionRow> {
    const found = await findById(db, id);
    if (!found) throw new Error('session not found');
    return found;
  }

  return {
    database,
    db,
    owner,
    escrow,
    node,
    payments,
    parts,
    settlements,
    signer,
    operator,
    paid,
    session,

    /** Creates a signer whose payments are final after this many blocks. */
    confirmedBy: (confirmations: number) => ({
      signer: new Signer(
        { ...signerParts, chain: { ...chain, confirmations }, gaps: new Set<string>() },
        operator,
      ),
      /** Resends transactions that the node has lost, as the payment worker does when it starts. */
      restore: () => new Signers({ ...signerParts, chains: [chain] }).restore(),
    }),

    /** Opens a session with this deposit held by a contract. */
    async open(
      deposit: bigint,
      payer = anvilAccount(4),
      contractAddress = escrow.address,
    ): Promise<string> {
      const address = payer.address.toLowerCase() as Hex;
      await escrow.approve(payer.address, contractAddress);
      const contract = escrow.at(contractAddress);
      await contract.send(payer.address, escrowCall('deposit', deposit));
      const [nonce, id] = [newNonce(), randomUUID()];
      const signed = { payer: address, amount: deposit, nonce, deadline: FAR };
      const signature = await escrow.sign(payer, signed, escrow.domain(contractAddress));
      const holdId = await escrow.idOf(address, nonce);
      await db.asPlatform().transaction(async (tx) => {
        await insertRow(tx, paymentSessions, {
          id,
          ...storedOf(newSessionToken()),
          sealedToken: 'sealed',
          address,
          chainId: String(CHAIN_ID),
          escrow: contractAddress.toLowerCase(),
          holdId,
          nonce,
          authorizationDeadline: new Date(Number(FAR) * 1_000),
          deposit: String(deposit),
        });
        await payments.request(tx, {
          cause: `session-open:${id}`,
          chainId: CHAIN_ID,
          signer: operator,
          ...openCall(contractAddress, { ...signed, signature }),
        });
      });
      await paid(`session-open:${id}`);
      await new SessionOpenings(parts).step(id);
      if ((await session(id)).state !== 'active') throw new Error('the session was not opened');
      return id;
    },

    /** Holds an amount for a debit. @returns the voucher's id. */
    async hold(id: string, amount: bigint): Promise<string> {
      const voucher = randomUUID();
      await hold(db.asPlatform(), {
        debit: sessionAccount(id),
        credit: spentAccount(id),
        amount,
        currency: 'pathusd',
        cause: voucherCause(voucher),
        forMs: AN_HOUR_MS,
      });
      return voucher;
    },

    /** Posts a held amount as delivered. */
    async post(id: string, voucher: string, amount: bigint): Promise<void> {
      await db.asPlatform().transaction(async (tx) => {
        await post(tx, voucherCause(voucher));
        await tx.query(
          `UPDATE payment_sessions SET delivered = delivered + $amount,
                  next_sequence = next_sequence + 1, settlement_due_at = now() WHERE id = $id`,
          { id, amount: String(amount) },
        );
      });
    },

    /** Delivers an amount and makes its settlement due at once. */
    async deliver(id: string, amount: bigint): Promise<void> {
      await this.post(id, await this.hold(id, amount), amount);
    },

    /** Runs a session's steps, and waits for its payments, until no step is left. */
    async run(id: string): Promise<string | undefined> {
      for (;;) {
        const step = await settlements.request(id);
        if (step.next === 'nothing') return step.state;
        if (step.next === 'debits') return 'waits for debits';
        await paid(step.cause);
        await settlements.settle(id, step.cause);
      }
    },

    /** Makes the retry of a failed settlement due now. */
    async retryNow(id: string): Promise<void> {
      await owner(
        `UPDATE payment_settlements SET retry_at = now() - interval '1 second'
          WHERE session_id = '${id}' AND state = 'failed';
         UPDATE payment_sessions SET settlement_due_at = now()
          WHERE id = '${id}' AND state = 'active'`,
      );
    },

    holdOf: async (id: string) => escrow.at(escrow.address).hold((await session(id)).holdId as Hex),

    /** Lists the pending operator notifications about a session. */
    async notifiedOf(id: string): Promise<NotifiedEvent[]> {
      const rows = await db
        .asPlatform()
        .query<{ event: NotifiedEvent }>('SELECT event FROM pending_notifications ORDER BY due_at');
      return rows.map(({ event }) => event).filter((event) => JSON.stringify(event).includes(id));
    },

    async close(): Promise<void> {
      await escrow.close();
      await database.close();
    },
  };
}
