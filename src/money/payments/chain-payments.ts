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

/** What is to be paid. */
export interface PaymentRequest {
  /** Why: the same cause is the same payment, whoever asks for it how often. */
  readonly cause: string;
  readonly chainId: number;
  /** Whose key signs, and whose nonce it takes. */
  readonly signer: Hex;
  /** All of them happen, or none: as many as `callsAtOnce` says for the chain. */
  readonly calls: readonly PaymentCall[];
  /** Most gas that it may take; as the node reckons when left out. */
  readonly gas?: bigint;
}

/** Another payment was asked for under a cause that has one: a defect of whoever asks. */
export class PaymentConflictError extends Error {
  override readonly name = 'PaymentConflictError';

  constructor(cause: string) {
    super(`Another payment was asked for under the cause ${cause}`);
  }
}

interface StatusRow {
  readonly cause: string;
  readonly state: PaymentState;
  readonly hash: Hex | null;
  readonly block: string | null;
  readonly failure: PaymentFailure | null;
}

/** Makes nothing of a cause that is there, and says whether that one is the same. */
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

/** Payments on chains: asked for here, and made by the run of whoever signs them. */
export class ChainPayments {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Has something paid when the platform's transaction holds.
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
    // Another one may have made it since this statement began: the next one sees it.
    for (let n = 0; n < 2; n++) {
      const [row] = await db.query<{ same: boolean }>(REQUEST, values);
      if (row?.same) return;
    }
    throw new PaymentConflictError(cause);
  }

  /** Undefined when nobody has asked for it. */
  async stateOf(cause: string): Promise<PaymentStatus | undefined> {
    return (await this.statesOf([cause])).get(cause);
  }

  /** Those that were asked for, by their causes. */
  async statesOf(causes: readonly string[]): Promise<ReadonlyMap<string, PaymentStatus>> {
    const rows = await this.#database
      .asPlatform()
      .query<StatusRow>(`${STATUS} WHERE cause = ANY ($causes)`, { causes });
    return new Map(rows.map((row) => [row.cause, present(row)]));
  }
}

/** @throws RangeError for what could never be paid. */
function checked(request: PaymentRequest): PaymentRequest {
  const { calls, chainId, signer } = request;
  const addresses = [signer, ...calls.map(({ to }) => to)];
  if (!addresses.every((each) => isAddress(each, { strict: false }))) {
    throw new RangeError('A payment names what is no address');
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

// What is hexadecimal stays it.
const lowerCase = (hex: Hex) => hex.toLowerCase() as Hex;

const present = ({ block, failure, hash, state }: StatusRow): PaymentStatus => ({
  state,
  hash: hash ?? undefined,
  block: block === null ? undefined : Number(block),
  failure: failure ?? undefined,
});
