import type { Statements } from '../../platform/database/database.js';

export interface LedgerCounts {
  accounts: number;
  transfers: number;
  openHolds: number;
}

export interface LedgerCheckParts {
  /** A connection that can read all tenants' rows. */
  readonly platform: Statements;
  readonly counts: LedgerCounts;
}

/**
 * A rule for the ledger that holds even during concurrent transfers. The check yields one sentence for
 * each difference, after each part of its work. Modules that move money elsewhere add their checks to
 * `LEDGER_CHECKS`.
 */
export type LedgerCheck = (parts: LedgerCheckParts) => AsyncIterable<readonly string[]>;
