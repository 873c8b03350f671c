import { ServiceError } from '../../lib/errors.js';
import { ChainAwayError } from './chain-node.js';

/** 500 for read-only endpoints (spec 4.9, 4.10), as opposed to ChainAwayError's 503. */
export class ChainUnreadableError extends ServiceError {
  override readonly name = 'ChainUnreadableError';

  constructor(options?: ErrorOptions) {
    super(500, 'Chain unavailable', undefined, undefined, options);
  }
}

/** Awaits a chain read for a read-only endpoint. @throws ChainUnreadableError in place of ChainAwayError */
export async function reading<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof ChainAwayError ? new ChainUnreadableError({ cause: error }) : error;
  }
}
