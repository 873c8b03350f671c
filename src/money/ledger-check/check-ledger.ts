import type { Database } from '../../platform/database/database.js';
import { formatAmount } from '../../types/money.js';
import {
  checkoutsAreBooked,
  clonesArePaid,
  creditsAreWhole,
  depositsAreWhole,
  feesAreBooked,
  payoutsArePaid,
} from './booked-checks.js';
import type { LedgerCheck, LedgerCounts } from './ledger-check.js';

/** Accounts compared in one statement, each at one moment. */
const PAGE = 200;

/** Maximum number of differences that a report names. */
export const MOST_NAMED = 100;

export interface LedgerReport extends Readonly<LedgerCounts> {
  /** One sentence for each difference; empty if the ledger balances. */
  readonly differences: readonly string[];
}

/** Checks that the ledger balances. @param moved called repeatedly while the check progresses. */
export async function checkLedger(
  database: Database,
  checks: readonly LedgerCheck[],
  moved: () => void = () => undefined,
): Promise<LedgerReport> {
  const counts = { accounts: 0, transfers: 0, openHolds: 0 };
  const parts = { platform: database.asPlatform(), counts };
  const differences: string[] = [];
  for (const check of checks) {
    for await (const found of check(parts)) {
      differences.push(...found.slice(0, MOST_NAMED - differences.length));
      if (differences.length === MOST_NAMED) return { ...counts, differences };
      moved();
    }
  }
  return { ...counts, differences };
}

interface ComparedAccount {
  readonly name: string;
  readonly currency: string;
  readonly balance: string;
  readonly held: string;
  readonly came: string;
  readonly went: string;
  readonly holds: string;
  readonly transfers: number;
  readonly open: number;
}

/**
 * Checks that each account's balance is the sum of its transfers, and its held amount the sum of its open
 * holds.
 */
const accountsAreTheirSums: LedgerCheck = async function* ({ platform, counts }) {
  const sumOf = (side: 'debit' | 'credit') => `
    (SELECT coalesce(sum(t.amount), 0) AS sum, count(*) AS count FROM ledger_transfers t
      WHERE t.${side} = a.name AND t.currency = a.currency)`;
  for (let after = { name: '', currency: '' }; ;) {
    const page = await platform.query<ComparedAccount>(
      `SELECT a.name, a.currency, a.balance::text, a.held::text, came.sum::text AS came,
              went.sum::text AS went, holds.sum::text AS holds, came.count::integer AS transfers,
              holds.count::integer AS open
         FROM (SELECT * FROM ledger_accounts WHERE (name, currency) > ($name, $currency)
                ORDER BY name, currency LIMIT ${PAGE}) AS a
        CROSS JOIN LATERAL ${sumOf('credit')} AS came
        CROSS JOIN LATERAL ${sumOf('debit')} AS went
        CROSS JOIN LATERAL
          (SELECT coalesce(sum(h.amount), 0) AS sum, count(*) AS count FROM ledger_holds h
            WHERE h.debit = a.name AND h.currency = a.currency AND h.state = 'open') AS holds
        ORDER BY a.name, a.currency`,
      after,
    );
    yield page.flatMap(differencesOf);
    for (const { transfers, open } of page) {
      counts.transfers += transfers;
      counts.openHolds += open;
    }
    counts.accounts += page.length;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    after = { name: last.name, currency: last.currency };
  }
};

function differencesOf({ name, currency, ...of }: ComparedAccount): string[] {
  const moved = BigInt(of.came) - BigInt(of.went);
  const compared = [
    ['balance', BigInt(of.balance), 'its transfers', moved],
    ['held', BigInt(of.held), 'its open holds', BigInt(of.holds)],
  ] as const;
  return compared.flatMap(([what, is, sumOf, sum]) =>
    is === sum
      ? []
      : [`${name}: ${what} is ${formatAmount(is)} ${currency}, ${sumOf} are ${formatAmount(sum)}`],
  );
}

/** Checks that all accounts of a currency sum to zero: every amount received was given by another account. */
const currenciesAreNothing: LedgerCheck = async function* ({ platform }) {
  const sums = await platform.query<{ currency: string; sum: string }>(
    `SELECT currency, sum(balance)::text AS sum FROM ledger_accounts
      GROUP BY currency HAVING sum(balance) <> 0 ORDER BY currency`,
  );
  yield sums.map(
    ({ currency, sum }) => `${currency}: all accounts are ${formatAmount(BigInt(sum))}`,
  );
};

export const LEDGER_CHECKS: readonly LedgerCheck[] = [
  accountsAreTheirSums,
  currenciesAreNothing,
  payoutsArePaid,
  clonesArePaid,
  feesAreBooked,
  depositsAreWhole,
  creditsAreWhole,
  checkoutsAreBooked,
];
