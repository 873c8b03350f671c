import { randomUUID } from 'node:crypto';
import { isAddress, type Hex } from 'viem';
import type { Database, Statements } from '../../platform/database/database.js';
import { callsAtOnce } from './chains.js';
import type {
  PaymentCall,
  PaymentFailure,
  PaymentState,
  PaymentStatus,
} from '../../types/payment.js';

export interface PaymentRequest {
  /** Idempotency key: requests with the same cause are the same payment. */
  readonly cause: string;
  readonly chainId: number;
  /** Address whose key signs and whose nonce is used. */
  readonly signer: Hex;
  /** Calls that all succeed or all fail; at most `callsAtOnce` for the chain. */
  readonly calls: readonly PaymentCall[];
  /** Gas limit; the node's estimate by default. */
  readonly gas?: bigint;
}

/** A different payment was requested under an existing cause: a defect of the caller. */
export class PaymentConflictError extends Error {
  override readonly name = 'PaymentConflictError';

  constructor(cause: string) {
    super(`The cause ${cause} already has a different payment: use a new cause`);
  }
}

interface StatusRow {
  readonly cause: string;
  readonly state: PaymentState;
  readonly hash: Hex | null;
  readonly block: string | null;
  readonly failure: PaymentFailure | null;
}

/** Inserts a payment unless its cause exists, and returns whether the existing payment is the same. */
const REQUEST = `
  WITH made AS (
    INSERT INTO payments (id, cause, chain_id, signer, calls, gas)
    VALUES ($id, $cause, $chainId, $signer, $calls::jsonb, $gas)
    ON CONFLICT (cause) DO NOTHING RETURNING 1
  )
  SELECT EXISTS (SELECT FROM made) OR EXISTS (
    SELECT FROM payments WHERE cause = $cause AND chain_id = $chainId::bigint AND signer = $signer
       AND calls = $calls::jsonb AND gas IS NOT DISTINCT FROM $gas::bigint) AS same`;

const STATUS = `SELECT cause, state, hash, block_number AS block, failure FROM payments`;

/** Payments on chains: requested here, and made by the workflow of their signer. */
export class ChainPayments {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Requests a payment that is made once the transaction has committed.
   *
   * @throws PaymentConflictError
   */
  async request(db: Statements, request: PaymentRequest): Promise<void> {
    const { cause, chainId, calls, gas, signer } = checked(request);
    const values = {
      id: randomUUID(),
      cause,
      chainId,
      signer,
      calls: JSON.stringify(calls.map((call) => ({ ...call, value: String(call.value) }))),
      gas: gas === undefined ? null : String(gas),
    };
    // A concurrent insert is invisible to this statement; the second one sees it.
    for (let n = 0; n < 2; n++) {
      const [row] = await db.query<{ same: boolean }>(REQUEST, values);
      if (row?.same) return;
    }
    throw new PaymentConflictError(cause);
  }

  /** Returns the state of a payment, or undefined if it was not requested. */
  async stateOf(cause: string): Promise<PaymentStatus | undefined> {
    return (await this.statesOf([cause])).get(cause);
  }

  /** Returns the states of the requested payments by cause. */
  async statesOf(causes: readonly string[]): Promise<ReadonlyMap<string, PaymentStatus>> {
    const rows = await this.#database
      .asPlatform()
      .query<StatusRow>(`${STATUS} WHERE cause = ANY ($causes)`, { causes });
    return new Map(rows.map((row) => [row.cause, present(row)]));
  }
}

/** Checks a request and lower-cases its addresses. @throws RangeError if it could never be paid. */
function checked(request: PaymentRequest): PaymentRequest {
  const { calls, chainId, signer } = request;
  const addresses = [signer, ...calls.map(({ to }) => to)];
  if (!addresses.every((each) => isAddress(each, { strict: false }))) {
    throw new RangeError('A payment has an invalid address: use 20 bytes in hex');
  }
  if (calls.length === 0 || calls.length > callsAtOnce(chainId)) {
    throw new RangeError(`A payment on the chain ${chainId} cannot have ${calls.length} calls`);
  }
  return {
    ...request,
    signer: lowerCase(signer),
    calls: calls.map(({ to, data, value }) => ({
      to: lowerCase(to),
      data: lowerCase(data),
      value,
    })),
  };
}

// Lower case keeps a hex string valid.
const lowerCase = (hex: Hex) => hex.toLowerCase() as Hex;

const present = ({ block, failure, hash, state }: StatusRow): PaymentStatus => ({
  state,
  hash: hash ?? undefined,
  block: block === null ? undefined : Number(block),
  failure: failure ?? undefined,
});
