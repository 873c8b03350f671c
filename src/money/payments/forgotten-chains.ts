import type { Statements } from '../../platform/database/database.js';

export interface KnownChains {
  /** Chain of payment sessions and clones. */
  readonly own: number;
  /** Chain of royalties. */
  readonly royalties: number;
}

/** Rows that wait for a chain without a configured node. */
export interface ForgottenChain {
  readonly chainId: number;
  readonly waiting: number;
}

/** Maximum number of chains that are reported. */
const MOST_CHAINS = 10;

/** Finds rows that wait for a chain no longer configured: they cannot progress on their own. */
export const forgottenChains = (
  db: Statements,
  { own, royalties }: KnownChains,
): Promise<ForgottenChain[]> => db.query<ForgottenChain>(FIND, { own, royalties });

const FIND = `
  SELECT chain_id::double precision AS "chainId", count(*)::integer AS waiting FROM (
    SELECT chain_id FROM payments
     WHERE settled_at IS NULL AND chain_id NOT IN ($own::bigint, $royalties::bigint)
    UNION ALL
    SELECT chain_id FROM payment_sessions
     WHERE state IN ('opening', 'active', 'settling') AND chain_id <> $own::bigint
    UNION ALL
    SELECT chain_id FROM clones WHERE state = 'waiting' AND chain_id <> $own::bigint
    UNION ALL
    SELECT chain_id FROM royalty_splits
     WHERE status IN ('queued', 'processing') AND chain_id <> $royalties::bigint
  ) AS forgotten
  GROUP BY chain_id ORDER BY chain_id LIMIT ${MOST_CHAINS}`;
