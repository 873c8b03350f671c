import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type * as z from 'zod';
import { describeError } from '../lib/describe-error.js';
import { BadGatewayError, BadRequestError, ServiceError } from '../lib/errors.js';
import { HoldOverError } from '../money/ledger/ledger.js';
import {
  RUN_MS,
  type Debit,
  type DebitRefusal,
  type Paid,
  type Purse,
  type WithPayment,
} from './debits.js';
import type { GatewayAction, Json, RunContext } from './gateway-action.js';
import type { GatewayCatalogue } from './gateway-catalogue.js';

/** Milliseconds between tries to post what was served, of which there are so many. */
const POST_AGAIN_MS = 250;
const POST_TRIES = 3;

export interface Order {
  readonly action: GatewayAction;
  /** What `action.input` has made of what was sent. */
  readonly input: z.output<GatewayAction['input']>;
  readonly purse: Purse;
  /** Of the request, as runs are told it. */
  readonly idempotencyKey: string;
}

export interface Served extends Paid {
  readonly result: Json;
}

export interface GatewayParts {
  readonly catalogue: GatewayCatalogue;
  readonly log: Logger;
  /** For a run, in milliseconds. */
  readonly runMs?: number;
}

/**
 * Sells runs of actions: the price is held, the action run, and the price posted, or released where
 * nobody was served. A client that goes away is served, and pays, all the same.
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
   * @param also is done in the transaction of the payment, so that both hold or none does.
   * @returns a refusal where the purse has not as much.
   * @throws BadRequestError for what the action refuses; BadGatewayError when it fails, or takes too
   *   long; what `also` throws: then nothing was paid. By anything else it is not known whether it was.
   */
  async serve(
    { action, idempotencyKey, input, purse }: Order,
    also?: (db: Parameters<WithPayment>[0], served: Served) => Promise<void>,
  ): Promise<Served | DebitRefusal> {
    const debit: Debit = {
      id: randomUUID(),
      plugin: action.plugin,
      action: action.action,
      amount: action.price,
    };
    try {
      const refusal = await purse.hold(debit);
      if (refusal) return refusal;
      const result = await this.#run(action, input, { id: debit.id, idempotencyKey });
      const within: WithPayment | undefined = also && ((db, paid) => also(db, { ...paid, result }));
      return { ...(await this.#post(purse, debit, within)), result };
    } catch (error) {
      await this.#release(purse, debit);
      if (error instanceof HoldOverError) throw tookTooLong(nameOf(action), error);
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
      throw new BadGatewayError(`${name} has failed${why}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Asks again where it was not heard whether it was done: it is done once. */
  async #post(purse: Purse, debit: Debit, also: WithPayment | undefined): Promise<Paid> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await purse.post(debit, also);
      } catch (error) {
        const isAnswer = error instanceof HoldOverError || error instanceof ServiceError;
        if (isAnswer || tries === POST_TRIES) throw error;
        await delay(POST_AGAIN_MS);
      }
    }
  }

  /** What cannot be released now is released by its end. */
  async #release(purse: Purse, debit: Debit): Promise<void> {
    try {
      await purse.release(debit);
    } catch (error) {
      this.#log.warn({ debit: debit.id, error: describeError(error) }, 'a debit was not released');
    }
  }
}

const nameOf = ({ action, plugin }: GatewayAction) => `${plugin} ${action}`;

const tookTooLong = (name: string, cause?: unknown) =>
  new BadGatewayError(`${name} took too long`, { cause });

/** Rejects when the signal aborts, also where nobody heeds it. */
function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const ended = () => reject(new Error('The run was ended', { cause: signal.reason }));
    signal.addEventListener('abort', ended, { once: true });
  });
}
