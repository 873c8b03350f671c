import type { ErrorCode } from './error-codes.js';

/**
 * The base of the domain's errors. Each has the HTTP status that the contract assigns and, if the
 * contract names one, a `code`. Any other thrown value is a defect and is answered as a masked 500.
 */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';

  /** @param facts fields of the error body beside `error` and `code`, such as `current`. */
  constructor(
    readonly status: number,
    message: string,
    readonly code?: ErrorCode,
    readonly facts: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * 500 unless the endpoint has another status: an outside resource failed, such as a page; the reason is shown
 * to the caller.
 */
export class ExternalFaultError extends ServiceError {
  override readonly name: string = 'ExternalFaultError';

  constructor(
    message: string,
    override readonly code: ErrorCode,
    options?: ErrorOptions,
    status = 500,
  ) {
    super(status, message, code, {}, options);
  }
}

/** 400: the request does not fit its declaration or a rule of the domain. */
export class BadRequestError extends ServiceError {
  override readonly name: string = 'BadRequestError';

  constructor(message: string, code?: ErrorCode, facts?: Readonly<Record<string, unknown>>) {
    super(400, message, code, facts);
  }
}

/** 401: no credentials, or invalid credentials. */
export class UnauthorizedError extends ServiceError {
  override readonly name = 'UnauthorizedError';

  constructor(message = 'Unauthorized') {
    super(401, message);
  }
}

/** 402: a plan, a subscription or a payment is missing. */
export class PaymentRequiredError extends ServiceError {
  override readonly name: string = 'PaymentRequiredError';

  constructor(message: string, code: ErrorCode, facts?: Readonly<Record<string, unknown>>) {
    super(402, message, code, facts);
  }
}

/** 403: authenticated, but not allowed. */
export class ForbiddenError extends ServiceError {
  override readonly name: string = 'ForbiddenError';

  constructor(message = 'Forbidden', code?: ErrorCode) {
    super(403, message, code);
  }
}

/** 404: missing, or owned by another user. The response never distinguishes these two cases. */
export class NotFoundError extends ServiceError {
  override readonly name = 'NotFoundError';

  constructor(message = 'Not found') {
    super(404, message);
  }
}

/** 409: in conflict with the present state or with work in progress; the code says which. */
export class ConflictError extends ServiceError {
  override readonly name: string = 'ConflictError';

  constructor(message: string, code: ErrorCode, facts?: Readonly<Record<string, unknown>>) {
    super(409, message, code, facts);
  }
}

/** 421: a request whose `Host` names another service. */
export class MisdirectedRequestError extends ServiceError {
  override readonly name = 'MisdirectedRequestError';

  constructor() {
    super(
      421,
      'No service here has this host name: add the name to ALLOWED_HOSTS if the request is meant for this service',
    );
  }
}

/** 422: an `Idempotency-Key` reused with a different request. */
export class UnprocessableError extends ServiceError {
  override readonly name = 'UnprocessableError';

  constructor(message: string) {
    super(422, message, 'IDEMPOTENCY_KEY_REUSED');
  }
}

/** The limit that refused a request. */
export interface RefusingLimit {
  /** Amount that the limit admits, such as requests, tokens or agents; 0 if another service limits us. */
  readonly max: number;
  /** Seconds until the limit admits more; an estimate if that needs the end of work or a removal. */
  readonly resetS: number;
}

/** 429: a rate limit or a quota is exceeded. */
export class TooManyRequestsError extends ServiceError {
  override readonly name: string = 'TooManyRequestsError';

  constructor(
    message: string,
    readonly limit: RefusingLimit,
    code?: ErrorCode,
    facts?: Readonly<Record<string, unknown>>,
  ) {
    super(429, message, code, facts);
  }
}

/** 502: another service sent an invalid answer or none. */
export class BadGatewayError extends ServiceError {
  override readonly name: string = 'BadGatewayError';

  constructor(message: string, options?: ErrorOptions) {
    super(502, message, undefined, undefined, options);
  }
}

/** 503: disabled or not configured. */
export class UnavailableError extends ServiceError {
  override readonly name: string = 'UnavailableError';

  constructor(message: string, options?: ErrorOptions, facts?: Readonly<Record<string, unknown>>) {
    super(503, message, undefined, facts, options);
  }
}

/** 500 (spec 4.11): an operation needs containers while Docker does not answer. */
export class DockerAwayError extends ServiceError {
  override readonly name = 'DockerAwayError';

  constructor() {
    super(500, 'Docker is not available');
  }
}
