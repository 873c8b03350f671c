import type { Hex } from 'viem';
import { ChainAwayError, type ChainNode } from '../chain/chain-node.js';
import { PATH_USD } from '../chain/tempo.js';
import type { Database, Statements } from '../../platform/database/database.js';
import { formatAmount } from '../../types/money.js';
import { readHold } from '../sessions/escrow.js';
import { feePaidBy } from '../payments/fee.js';
import { checkLedger, LEDGER_CHECKS, MOST_NAMED, type LedgerReport } from './check-ledger.js';
import { balanceOf } from '../ledger/ledger.js';

/** Sessions whose holds are read at a time. */
const PAGE = 50;

/** Maximum number of fees that are compared, newest first; each takes one request to the node. */
const FEES = 500;

export interface LedgerChain {
  /** A node of the chain on which the platform is paid. */
  readonly node: Pick<ChainNode, 'chainId' | 'tokenBalance' | 'read' | 'receipt'>;
  /** The treasury's address; undefined if no payee is configured. */
  readonly treasury: Hex | undefined;
}

export interface WholeReport extends LedgerReport {
  /** True if the node was unavailable, so the chain was compared in part or not at all. */
  readonly isChainAway: boolean;
}

/** Checks that the ledger balances and matches the chain. @param moved as for `checkLedger`. */
export async function checkLedgerAndChain(
  database: Database,
  chain: LedgerChain,
  moved: () => void = () => undefined,
): Promise<WholeReport> {
  const report = await checkLedger(database, LEDGER_CHECKS, moved);
  const differences = [...report.differences];
  let isChainAway = false;
  try {
    for await (const found of differencesOnChain(database.asPlatform(), chain, moved)) {
      if (differences.length < MOST_NAMED) differences.push(found);
    }
  } catch (error) {
    if (!(error instanceof ChainAwayError)) throw error;
    isChainAway = true;
  }
  return { ...report, differences, isChainAway };
}

/**
 * Yields differences between the ledger and the chain; makes no request if there is nothing to compare.
 * @throws ChainAwayError
 */
async function* differencesOnChain(
  platform: Statements,
  { node, treasury }: LedgerChain,
  moved: () => void,
): AsyncGenerator<string> {
  // Read the ledger first: every booked amount was on chain before.
  const { balance: booked } = await balanceOf(platform, 'treasury', 'pathusd');
  if (booked > 0n) {
    if (treasury === undefined) throw new ChainAwayError();
    const has = await node.tokenBalance(PATH_USD, treasury);
    if (has < booked) yield lessOf('the treasury', treasury, has, booked);
  }
  const escrows = await platform.query<{ escrow: Hex; held: string; at: string }>(
    `SELECT escrow, sum(deposit - settled)::text AS held, now()::text AS at FROM payment_sessions
      WHERE chain_id = $chainId AND state IN ('active', 'settling')
      GROUP BY escrow ORDER BY escrow`,
    { chainId: node.chainId },
  );
  for (const { at, escrow, held } of escrows) {
    const has = await node.tokenBalance(PATH_USD, escrow);
    moved();
    if (has >= BigInt(held)) continue;
    const still = await heldStill(platform, node, { at, escrow, moved });
    if (has < still) yield lessOf('the escrow', escrow, has, still);
  }
  yield* differingFees(platform, node, moved);
}

/** Yields differing fees. Skips transactions that a reorganisation has since moved to another block. */
async function* differingFees(
  platform: Statements,
  node: LedgerChain['node'],
  moved: () => void,
): AsyncGenerator<string> {
  const fees = await platform.query<Record<'hash' | 'payer' | 'block', Hex> & { fee: string }>(
    `SELECT hash, fee::text, fee_payer AS payer, fee_block AS block FROM transactions
      WHERE chain_id = $chainId AND fee IS NOT NULL AND final_at IS NOT NULL
      ORDER BY final_at DESC LIMIT ${FEES}`,
    { chainId: node.chainId },
  );
  for (let first = 0; first < fees.length; first += PAGE) {
    const page = await Promise.all(
      fees.slice(first, first + PAGE).map(async ({ block, fee, hash, payer }) => {
        const receipt = await node.receipt(hash);
        if (receipt?.blockHash !== block) return [];
        const [paid, booked] = [feePaidBy(payer, receipt), BigInt(fee)];
        if (paid === booked) return [];
        return `the fee of ${hash} is ${formatAmount(paid)} pathusd on chain, in the ledger ${formatAmount(booked)}`;
      }),
    );
    yield* page.flat();
    moved();
  }
}

/**
 * Returns the least amount that an escrow must hold for the sessions open at `at`, now that its balance
 * is read. Excludes amounts settled or closed since, and chain events not yet recorded in rows.
 */
async function heldStill(
  platform: Statements,
  node: LedgerChain['node'],
  of: { readonly escrow: Hex; readonly at: string; readonly moved: () => void },
): Promise<bigint> {
  let sum = 0n;
  for (let after = ''; ;) {
    const page = await platform.query<Record<'id' | 'deposit' | 'settled', string> & { hold: Hex }>(
      `SELECT id, hold_id AS hold, deposit::text, settled::text FROM payment_sessions
        WHERE chain_id = $chainId AND escrow = $escrow AND state IN ('active', 'settling')
          AND opened_at <= $at::timestamptz AND id > $after
        ORDER BY id LIMIT ${PAGE}`,
      { chainId: node.chainId, escrow: of.escrow, at: of.at, after },
    );
    const parts = await Promise.all(
      page.map(async ({ deposit, hold, settled }) => {
        const onChain = await readHold(node, of.escrow, hold);
        if (onChain?.closed) return 0n;
        const [booked, moved] = [BigInt(settled), onChain?.settled ?? 0n];
        return BigInt(deposit) - (moved > booked ? moved : booked);
      }),
    );
    sum += parts.reduce((all, part) => all + part, 0n);
    of.moved();
    const last = page.at(-1);
    if (!last || page.length < PAGE) return sum;
    after = last.id;
  }
}

const lessOf = (whose: string, address: Hex, has: bigint, booked: bigint): string =>
  `${whose} ${address} has ${formatAmount(has)} pathusd on chain, in the ledger ${formatAmount(booked)}`;
