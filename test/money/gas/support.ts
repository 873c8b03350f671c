import { GasBudget, type GasLimits } from '../../../src/money/gas/gas-budget.js';
import type { Database } from '../../../src/platform/database/database.js';

/** Returns a budget with the default limits, unless `limits` overrides them. */
export const gasBudget = (database: Database, limits: Partial<GasLimits> = {}): GasBudget =>
  new GasBudget(database, { perOwner: 100_000_000, total: 2_000_000_000, ...limits });

/** A reservation as stored. */
export interface StoredGas {
  readonly id: string;
  readonly userId: string | null;
  readonly wallet: string | null;
  readonly client: string | null;
  readonly gas: number;
  readonly hasFailed: boolean;
  readonly isSettled: boolean;
}

/** Lists the reservations in order of their causes. */
export const storedGas = (database: Database): Promise<StoredGas[]> =>
  database.asPlatform().query<StoredGas>(
    `SELECT id, user_id AS "userId", wallet, client, gas::double precision AS gas,
            has_failed AS "hasFailed", settled_at IS NOT NULL AS "isSettled"
       FROM gas_reservations ORDER BY id`,
  );
