import type { Statements } from '../../platform/database/database.js';

/** The chains that something can be done on. */
export interface KnownChains {
  /** Of payment sessions and clones. */
  readonly own: number;
  /** Of royalties. */
  readonly royalties: number;
}

/** What waits for a chain that nobody can reach. */
export interface ForgottenChain {
  readonly chainId: number;
  /** How many rows. */
  readonly waiting: number;
}

/** As many are told of. */
const MOST_CHAINS = 10;

/** Finds what waits for chains that were configured once, and are not any more: nothing becomes of it by itself. */
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
