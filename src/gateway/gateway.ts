import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type * as z from 'zod';
import { describeError } from '../lib/describe-error.js';
import { BadGatewayError, BadRequestError, ServiceError } from '../lib/errors.js';
import { HoldNotOpenError } from '../money/ledger/ledger.js';
import {
  RUN_MS,
  type Debit,
  type DebitRefusal,
  type Paid,
  type PaymentSource,
  type InPaymentTransaction,
} from './debits.js';
import type { GatewayAction, Json, RunContext } from './gateway-action.js';
import type { GatewayCatalogue } from './gateway-catalogue.js';

/** Milliseconds between two tries to post a debit, and the number of tries. */
const POST_AGAIN_MS = 250;
const POST_TRIES = 3;

export interface Order {
  readonly action: GatewayAction;
  /** The input as parsed by `action.input`. */
  readonly input: z.output<GatewayAction['input']>;
  readonly purse: PaymentSource;
  /** The key of the buyer's request, passed on to runs. */
  readonly idempotencyKey: string;
}

export interface ServedOrder extends Paid {
  readonly result: Json;
}

export interface GatewayParts {
  readonly catalogue: GatewayCatalogue;
  readonly log: Logger;
  readonly runMs?: number;
}

/**
 * Holds the price, runs the action, then posts the price, or releases the hold after a failure. A client that
 * disconnects is still served and charged.
 */
export class Gateway {
  readonly catalogue: GatewayCatalogue;
  readonly #log: Logger;
  readonly #runMs: number;

  constructor({ catalogue, log, runMs = RUN_MS }: GatewayParts) {
    this.catalogue = catalogue;
    this.#log = log;
    this.#runMs = runMs;
  }

  /**
   * Runs an action for payment, with extra work in the payment's transaction; a refusal if the purse has too
   * little. @throws BadRequestError for its input; BadGatewayError if it fails or takes too long; the errors
   * of `also`: nothing was paid then. After any other error the payment may have happened.
   */
  async serve(
    { action, idempotencyKey, input, purse }: Order,
    also?: (db: Parameters<InPaymentTransaction>[0], served: ServedOrder) => Promise<void>,
  ): Promise<ServedOrder | DebitRefusal> {
    const debit: Debit = {
      id: randomUUID(),
      plugin: action.plugin,
      action: action.action,
      amount: action.price,
    };
    try {
      const refusal = await purse.hold(debit);
      if (refusal) return refusal;
      const result = await this.#run(action, input, {
        id: debit.id,
        buyer: purse.buyer,
        idempotencyKey,
      });
      const within: InPaymentTransaction | undefined =
        also && ((db, paid) => also(db, { ...paid, result }));
      return { ...(await this.#post(purse, debit, within)), result };
    } catch (error) {
      await this.#release(purse, debit);
      if (error instanceof HoldNotOpenError) throw tookTooLong(nameOf(action), error);
      throw error;
    }
  }

  async #run(
    action: GatewayAction,
    input: unknown,
    run: Omit<RunContext, 'signal'>,
  ): Promise<Json> {
    const name = nameOf(action);
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(tookTooLong(name)), this.#runMs);
    try {
      return await Promise.race([
        action.run(input, { ...run, signal: limit.signal }),
        abortOf(limit.signal),
      ]);
    } catch (error) {
      if (limit.signal.aborted) throw limit.signal.reason;
      if (error instanceof BadRequestError) throw error;
      const why = error instanceof ServiceError ? `: ${error.message}` : '';
      throw new BadGatewayError(`${name} failed${why}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Posts the debit, and retries if the outcome is unknown; posting is idempotent. */
  async #post(
    purse: PaymentSource,
    debit: Debit,
    also: InPaymentTransaction | undefined,
  ): Promise<Paid> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await purse.post(debit, also);
      } catch (error) {
        const isAnswer = error instanceof HoldNotOpenError || error instanceof ServiceError;
        if (isAnswer || tries === POST_TRIES) throw error;
        await delay(POST_AGAIN_MS);
      }
    }
  }

  /** Releases the hold. After a failure the hold expires by itself. */
  async #release(purse: PaymentSource, debit: Debit): Promise<void> {
    try {
      await purse.release(debit);
    } catch (error) {
      this.#log.warn({ debit: debit.id, error: describeError(error) }, 'releasing a debit failed');
    }
  }
}

const nameOf = ({ action, plugin }: GatewayAction) => `${plugin} ${action}`;

const tookTooLong = (name: string, cause?: unknown) =>
  new BadGatewayError(`${name} took too long: retry later`, { cause });

/** Returns a promise that rejects when the signal aborts, for actions that ignore the signal. */
function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const ended = () => reject(new Error('The run was aborted', { cause: signal.reason }));
    signal.addEventListener('abort', ended, { once: true });
  });
}
