import {
  BadGatewayError,
  BadRequestError,
  ServiceError,
  TooManyRequestsError,
} from '../../lib/errors.js';
import type { ProviderError, ProviderFailure } from '../completion/provider-error.js';

/** OpenAI's code for a model that does not exist. */
export const MODEL_NOT_FOUND = 'model_not_found';

/** Wait for a provider that names none. */
const RETRY_AFTER_MS = 5_000;

/** An attempt as shown in logs, metrics and to administrators. */
export interface AttemptResult {
  readonly provider: string;
  readonly model: string;
  readonly outcome: ProviderFailure | 'ok';
  /** Milliseconds until the answer, or until its stream began. */
  readonly ms: number;
}

/** 404: the last provider of the route does not have the model; clients do not retry. */
export class ModelNotFoundError extends ServiceError {
  override readonly name = 'ModelNotFoundError';

  constructor(message: string) {
    super(404, message, MODEL_NOT_FOUND);
  }
}

/** All providers of a route failed. Contains no text of a provider. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';

  constructor(
    readonly failure: ProviderError,
    readonly attempts: readonly AttemptResult[],
  ) {
    super(failure.message, { cause: failure });
  }

  /** Returns the error for the caller: a specific one if the caller can act on it, otherwise a 502. */
  get refusal(): ServiceError {
    const { failure, provider, retryAfterMs } = this.failure;
    switch (failure) {
      case 'unknown_model':
        return new ModelNotFoundError(
          `The AI provider ${provider} does not have the model ${this.attempts.at(-1)?.model ?? ''}`,
        );
      case 'too_long':
        return new BadRequestError(
          'The conversation is too long for the model',
          'context_length_exceeded',
        );
      case 'refused':
        return new BadRequestError('The AI provider refuses to answer this', 'content_refused');
      case 'bad_request':
        return new BadRequestError(`The AI provider ${provider} does not accept this request`);
      case 'rate_limited':
        return new TooManyRequestsError(
          `The AI provider ${provider} limits its requests`,
          { max: 0, resetS: (retryAfterMs ?? RETRY_AFTER_MS) / 1_000 },
          undefined,
          retryAfterMs === undefined ? {} : { retryAfter: Math.ceil(retryAfterMs / 1000) },
        );
      default:
        return new BadGatewayError(`The AI provider ${provider} does not answer (${failure})`, {
          cause: this.failure,
        });
    }
  }
}
