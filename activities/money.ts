import { Context } from '@temporalio/activity';
import type { Database } from '../src/platform/database/database.js';
import {
  checkLedgerAndChain,
  type LedgerChain,
  type WholeReport,
} from '../src/money/ledger-check/check-on-chain.js';
import { releaseEndedHolds } from '../src/money/ledger/ended-holds.js';
import { NO_AGENT, putInOutbox } from '../src/notifications/outbox.js';
import { forgottenChains, type KnownChains } from '../src/money/payments/forgotten-chains.js';

/** What a pass found; what differs is named by `check:ledger`. */
export type LedgerChecked = Omit<WholeReport, 'differences'> & { readonly differences: number };

interface Parts {
  readonly database: Database;
  readonly chain: LedgerChain;
  readonly knownChains: KnownChains;
}

/** What looks after the ledger, for workflows on schedules. */
export function createMoneyActivities({ chain, database, knownChains }: Parts) {
  return {
    /** Short and idempotent. @returns how many were released. */
    releaseEndedHolds: () => releaseEndedHolds(database),

    /**
     * Has operators told of a ledger that does not balance, and of what waits for chains that are not
     * configured any more, once by each run that finds it so.
     */
    async checkWholeLedger(): Promise<LedgerChecked> {
      const { heartbeat, info, log } = Context.current();
      const { workflowExecution: run } = info;
      const report = await checkLedgerAndChain(database, chain, () => heartbeat());
      // No difference: the next hour asks again.
      if (report.isChainAway) log.warn('The ledger was checked, and the chain could not be asked');
      const differences = report.differences.length;
      const [platform, pass] = [database.asPlatform(), run?.runId ?? info.activityId];
      if (differences > 0) {
        const id = `ledger-${pass}`;
        await putInOutbox(platform, {
          ...{ id, agent: NO_AGENT, event: 'ledger_unbalanced', differences },
        });
      }
      for (const forgotten of await forgottenChains(platform, knownChains)) {
        const id = `chain-unknown-${forgotten.chainId}-${pass}`;
        await putInOutbox(platform, {
          ...{ id, agent: NO_AGENT, event: 'chain_unknown', ...forgotten },
        });
      }
      return { ...report, differences };
    },
  };
}

export type MoneyActivities = ReturnType<typeof createMoneyActivities>;
export type MoneyRecordActivities = Pick<MoneyActivities, 'releaseEndedHolds'>;
