import { Context } from '@temporalio/activity';
import type { Database } from '../src/platform/database/database.js';
import {
  checkLedgerAndChain,
  type LedgerChain,
  type WholeReport,
} from '../src/money/ledger-check/check-on-chain.js';
import { releaseExpiredHolds } from '../src/money/ledger/release-expired-holds.js';
import { NO_AGENT, requestNotification } from '../src/notifications/outbox.js';
import { forgottenChains, type KnownChains } from '../src/money/payments/forgotten-chains.js';
import { closeAgedSessions } from '../src/money/sessions/close-aged-sessions.js';
import type { PaymentSessionSettings } from '../src/money/sessions/settings.js';

/** `check:ledger` lists the differences. */
export type LedgerChecked = Omit<WholeReport, 'differences'> & { readonly differences: number };

interface Parts {
  readonly database: Database;
  readonly chain: LedgerChain;
  readonly knownChains: KnownChains;
  readonly sessionSettings: Pick<PaymentSessionSettings, 'holdMs' | 'maxAgeMs'>;
  /** Receives the number of differences that a check of the ledger found. */
  readonly onLedgerChecked?: ((differences: number) => void) | undefined;
}

export function createMoneyActivities(parts: Parts) {
  const { chain, database, knownChains, onLedgerChecked, sessionSettings } = parts;
  return {
    /** Releases ended holds, and returns how many; short and idempotent. */
    releaseEndedHolds: () => releaseExpiredHolds(database),

    /** @returns the number of sessions that this call begins to close. */
    closeAgedSessions: () => closeAgedSessions(database, sessionSettings),

    /**
     * Notifies operators of a ledger that does not balance, and of payments that wait for chains no longer
     * configured: once in each run that finds them.
     */
    async checkWholeLedger(): Promise<LedgerChecked> {
      const { heartbeat, info, log } = Context.current();
      const { workflowExecution: run } = info;
      const report = await checkLedgerAndChain(database, chain, () => heartbeat());
      // Not a difference: the next hourly run checks again.
      if (report.isChainAway) log.warn('The ledger was checked, but the chain was unavailable');
      const differences = report.differences.length;
      onLedgerChecked?.(differences);
      const [platform, pass] = [database.asPlatform(), run?.runId ?? info.activityId];
      if (differences > 0) {
        const id = `ledger-${pass}`;
        await requestNotification(platform, {
          id,
          agent: NO_AGENT,
          event: 'ledger_unbalanced',
          differences,
        });
      }
      for (const forgotten of await forgottenChains(platform, knownChains)) {
        const id = `chain-unknown-${forgotten.chainId}-${pass}`;
        await requestNotification(platform, {
          id,
          agent: NO_AGENT,
          event: 'chain_unknown',
          ...forgotten,
        });
      }
      return { ...report, differences };
    },
  };
}

export type MoneyActivities = ReturnType<typeof createMoneyActivities>;
export type MoneyRecordActivities = Pick<
  MoneyActivities,
  'releaseEndedHolds' | 'closeAgedSessions'
>;
