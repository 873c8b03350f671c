import type { Statements } from '../../platform/database/database.js';

/** How many there are of what was compared. */
export interface LedgerCounts {
  accounts: number;
  transfers: number;
  openHolds: number;
}

/** What a check works with. */
export interface LedgerCheckParts {
  /** The rows of all. */
  readonly platform: Statements;
  readonly counts: LedgerCounts;
}

/**
 * Something that has to hold of the ledger, also while others move money: a sentence for each
 * difference, after however much it looked at. Parts of the platform that move money elsewhere have
 * theirs in `LEDGER_CHECKS`.
 */
export type LedgerCheck = (parts: LedgerCheckParts) => AsyncIterable<readonly string[]>;
