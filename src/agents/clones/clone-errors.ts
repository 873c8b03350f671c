import { PaymentRequiredError, ServiceError } from '../../lib/errors.js';
import type { PaymentFault } from './payment-fault.js';

/** 402: the chain does not know the transaction (yet): the same request may be made again. */
export class PaymentNotFoundError extends PaymentRequiredError {
  constructor() {
    super(
      'The chain does not know this transaction; try again when it is mined',
      'PAYMENT_NOT_FOUND',
    );
  }
}

/** 402: the transaction does not pay for the clone; `reason` says why. */
export class PaymentInvalidError extends PaymentRequiredError {
  constructor(reason: PaymentFault | 'timestamp' | 'not_linked') {
    super('The transaction does not pay for this clone', 'PAYMENT_INVALID', { reason });
  }
}

/** 409: a transaction pays for one clone, ever. */
export class PaymentUsedError extends ServiceError {
  /** @param cloneId what it has paid for, for its owner alone. */
  constructor(cloneId?: string) {
    const facts = cloneId === undefined ? {} : { cloneId };
    super(409, 'The transaction has paid for a clone before', 'PAYMENT_USED', facts);
  }
}
