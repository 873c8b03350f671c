import { ForeignFaultError } from '../lib/errors.js';

/** 500: a page that would take more time or memory than one page may. */
export class TooComplexError extends ForeignFaultError {
  constructor(options?: ErrorOptions) {
    super('The page is too complex to be read', 'TOO_COMPLEX', options);
  }
}
