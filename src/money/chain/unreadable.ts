import { ServiceError } from '../../lib/errors.js';
import { ChainAwayError } from './chain-node.js';

/** 500 (spec 4.9, 4.10): what is only read, and nobody has lost anything. Also ChainAwayError's 503. */
export class ChainUnreadableError extends ServiceError {
  constructor(options?: ErrorOptions) {
    super(500, 'Chain unavailable', undefined, undefined, options);
  }
}

/** For endpoints that only read the chain. @throws ChainUnreadableError in place of ChainAwayError */
export async function reading<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw error instanceof ChainAwayError ? new ChainUnreadableError({ cause: error }) : error;
  }
}
