import type { Logger } from 'pino';
import { describeError } from '../../src/lib/describe-error.js';
import { ForeignFaultError, ServiceError } from '../../src/lib/errors.js';
import type { Identity } from '../auth/authentication.js';
import type { Endpoint } from './endpoint.js';
import type { Plan } from './endpoint-plan.js';
import { routeOf, type HandlerRequest } from './endpoint-request.js';
import { errorAnswer, type ErrorAnswer } from './error-answer.js';
import { hashRequest, readIdempotencyKey, type OncePerKey } from './idempotency.js';
import { CLIENT_LEFT, errorJson, jsonAnswer, type Answer } from './presenter.js';

export interface HandlingOptions {
  /** Undefined if no endpoint accepts `Idempotency-Key`. */
  readonly idempotency: OncePerKey | undefined;
  readonly log: Logger;
}

/** Runs the handlers of admitted requests, and converts their results and errors to answers. */
export class Handling {
  readonly #options: HandlingOptions;

  constructor(options: HandlingOptions) {
    this.#options = options;
  }

  /** Runs the handler once, or returns the stored answer of the `Idempotency-Key`. */
  once(plan: Plan, request: HandlerRequest, identity: Identity): Promise<Answer> {
    const { endpoint } = plan;
    const { idempotency } = this.#options;
    if (idempotency === undefined || !endpoint.idempotent) return this.#handle(plan, request);
    const key = readIdempotencyKey(request.idempotencyKey);
    if (key === undefined || identity.keepsAnswer === true) return this.#handle(plan, request);
    return idempotency(
      {
        caller: identity.scope,
        route: routeOf(endpoint),
        key,
        requestHash: hashRequest(request.params, request.query, request.body),
      },
      (keep) => {
        request.keepAnswer = (db, reply) => keep(db, plan.presenter.present(reply));
        return this.#handle(plan, request);
      },
    );
  }

  /** Returns the answer for an error, in the endpoint's error format. */
  failed(error: unknown, requestId: string, endpoint?: Endpoint): Answer {
    return errorJson(endpoint, this.#told(error, requestId));
  }

  /** Runs the handler and never throws: storing the answer for repetitions relies on that. */
  async #handle(plan: Plan, request: HandlerRequest): Promise<Answer> {
    const { endpoint, presenter } = plan;
    try {
      return presenter.present(await endpoint.handler(request));
    } catch (error) {
      // The client disconnected, and this caused the error.
      if (request.signal.aborted && error === request.signal.reason) {
        return jsonAnswer(CLIENT_LEFT, {});
      }
      return error instanceof ServiceError
        ? this.#refused(plan, error, request.requestId)
        : this.failed(error, request.requestId, endpoint);
    }
  }

  /** Checks that the endpoint declares the error: domain errors must be declared too. */
  #refused({ endpoint, presenter }: Plan, error: ServiceError, requestId: string): Answer {
    try {
      return presenter.presentError(this.#told(error, requestId));
    } catch (undeclared) {
      return this.failed(undeclared, requestId, endpoint);
    }
  }

  /** Logs the details that the caller must not see, and returns the answer for the error. */
  #told(error: unknown, requestId: string): ErrorAnswer {
    const answer = errorAnswer(error, requestId);
    if (answer.status >= 500) {
      const level = error instanceof ForeignFaultError ? 'debug' : 'error';
      this.#options.log[level]({ requestId, error: describeError(error) }, 'failed');
    }
    return answer;
  }
}
