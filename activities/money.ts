import { Context } from '@temporalio/activity';
import type { Database } from '../src/database/database.js';
import {
  checkLedgerAndChain,
  type LedgerChain,
  type WholeReport,
} from '../src/ledger/check-on-chain.js';
import { releaseEndedHolds } from '../src/ledger/ended-holds.js';
import { NO_AGENT, putInOutbox } from '../src/notifications/outbox.js';

/** What a pass found; what differs is named by `check:ledger`. */
export type LedgerChecked = Omit<WholeReport, 'differences'> & { readonly differences: number };

interface Parts {
  readonly database: Database;
  readonly chain: LedgerChain;
}

/** What looks after the ledger, for workflows on schedules. */
export function createMoneyActivities({ chain, database }: Parts) {
  return {
    /** Short and idempotent. @returns how many were released. */
    releaseEndedHolds: () => releaseEndedHolds(database),

    /** Has operators told of a ledger that does not balance, once by each run that finds it so. */
    async checkWholeLedger(): Promise<LedgerChecked> {
      const { heartbeat, info, log } = Context.current();
      const { workflowExecution: run } = info;
      const report = await checkLedgerAndChain(database, chain, () => heartbeat());
      // No difference: the next hour asks again.
      if (report.isChainAway) log.warn('The ledger was checked, and the chain could not be asked');
      const differences = report.differences.length;
      if (differences > 0) {
        const id = `ledger-${run?.runId ?? info.activityId}`;
        await database
          .asPlatform()
          .transaction((db) =>
            putInOutbox(db, { id, agent: NO_AGENT, event: 'ledger_unbalanced', differences }),
          );
      }
      return { ...report, differences };
    },
  };
}

export type MoneyActivities = ReturnType<typeof createMoneyActivities>;
export type MoneyRecordActivities = Pick<MoneyActivities, 'releaseEndedHolds'>;
