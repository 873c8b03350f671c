/**
 * The errors of the domain. Each knows the HTTP status the contract gives it and, where the
 * contract names one, its `code`. Everything else that is thrown is a defect and is answered as a
 * masked 500.
 */
export class ServiceError extends Error {
  /** @param facts fields added to the error body beside `error` and `code`, such as `current`. */
  constructor(
    readonly status: number,
    message: string,
    readonly code?: string,
    readonly facts: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** 500 of what lies outside, such as a page that cannot be fetched: told to who asked, no fault of ours. */
export class ForeignFaultError extends ServiceError {
  constructor(message: string, code: string, options?: ErrorOptions) {
    super(500, message, code, {}, options);
  }
}

/** 400: the request does not fit its declaration or a rule of the domain. */
export class BadRequestError extends ServiceError {
  constructor(message: string, facts?: Readonly<Record<string, unknown>>) {
    super(400, message, undefined, facts);
  }
}

/** 401: nobody, or not who they say. */
export class UnauthorizedError extends ServiceError {
  constructor(message = 'Unauthorized') {
    super(401, message);
  }
}

/** 402: a plan, a subscription or a payment is missing. */
export class PaymentRequiredError extends ServiceError {
  constructor(message: string, code?: string, facts?: Readonly<Record<string, unknown>>) {
    super(402, message, code, facts);
  }
}

/** 403: known, but not allowed. */
export class ForbiddenError extends ServiceError {
  constructor(message = 'Forbidden', code?: string) {
    super(403, message, code);
  }
}

/** 404: not there, or not the caller's: the two are never told apart. */
export class NotFoundError extends ServiceError {
  constructor(message = 'Not found') {
    super(404, message);
  }
}

/** 409: in conflict with what is there or under way. */
export class ConflictError extends ServiceError {
  constructor(message: string, facts?: Readonly<Record<string, unknown>>) {
    super(409, message, undefined, facts);
  }
}

/** 421: a request that means somebody else by its `Host`. */
export class MisdirectedRequestError extends ServiceError {
  constructor() {
    super(421, 'No service has this host name here: if it is to have one, ALLOWED_HOSTS names it');
  }
}

/** 422: an `Idempotency-Key` came again with another request. */
export class UnprocessableError extends ServiceError {
  constructor(message: string) {
    super(422, message);
  }
}

/** 429: a rate or a cap. */
export class TooManyRequestsError extends ServiceError {
  constructor(message: string, code?: string, facts?: Readonly<Record<string, unknown>>) {
    super(429, message, code, facts);
  }
}

/** 429 by a limit that is counted elsewhere. */
export class LimitedElsewhereError extends TooManyRequestsError {
  /** @param headers what is said there of the limit. */
  constructor(
    message: string,
    readonly headers: Readonly<Record<string, string>>,
    code?: string,
    facts?: Readonly<Record<string, unknown>>,
  ) {
    super(message, code, facts);
  }
}

/** 502: another service answered wrongly or not at all. */
export class BadGatewayError extends ServiceError {
  constructor(message: string, options?: ErrorOptions) {
    super(502, message, undefined, undefined, options);
  }
}

/** 503: switched off or not configured. */
export class UnavailableError extends ServiceError {
  constructor(message: string, options?: ErrorOptions, facts?: Readonly<Record<string, unknown>>) {
    super(503, message, undefined, facts, options);
  }
}

/** 500 (spec 4.11): what needs containers is not done while Docker does not answer. */
export class DockerAwayError extends ServiceError {
  constructor() {
    super(500, 'Docker is not available');
  }
}
