import { PaymentRequiredError, ServiceError } from '../../lib/errors.js';
import type { PaymentFault } from './payment-fault.js';

/** 402: the chain does not have the transaction (yet); the same request may be retried. */
export class PaymentNotFoundError extends PaymentRequiredError {
  override readonly name = 'PaymentNotFoundError';

  constructor() {
    super('The chain does not have this transaction: retry when it is mined', 'PAYMENT_NOT_FOUND');
  }
}

export class PaymentInvalidError extends PaymentRequiredError {
  override readonly name = 'PaymentInvalidError';

  constructor(reason: PaymentFault | 'timestamp' | 'not_linked') {
    super('The transaction is not a valid payment for this clone', 'PAYMENT_INVALID', { reason });
  }
}

/** 409: a transaction pays for at most one clone. */
export class PaymentUsedError extends ServiceError {
  override readonly name = 'PaymentUsedError';

  /** `cloneId`, the clone already paid for, is set only for its owner. */
  constructor(cloneId?: string) {
    const facts = cloneId === undefined ? {} : { cloneId };
    super(
      409,
      'The transaction has already paid for a clone: pay with a new transaction',
      'PAYMENT_USED',
      facts,
    );
  }
}

export class ParentGoneError extends Error {
  override readonly name = 'ParentGoneError';

  constructor() {
    super('The parent agent of this clone has been removed');
  }
}
