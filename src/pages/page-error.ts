import { ExternalFaultError } from '../lib/errors.js';

/** 500: reading the page would take more time or memory than allowed. */
export class TooComplexError extends ExternalFaultError {
  override readonly name = 'TooComplexError';

  constructor(options?: ErrorOptions) {
    super('The page is too complex to be read', 'TOO_COMPLEX', options);
  }
}
