import { ExternalFaultError } from '../../lib/errors.js';

/** The reason why an external resource could not be read. */
export type OutboundCode =
  | 'INVALID_URL'
  | 'URL_NOT_ALLOWED'
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_MANY_REDIRECTS'
  | 'UPSTREAM_STATUS'
  | 'NOT_HTML'
  | 'TOO_LARGE'
  | 'BAD_ENCODING';

/** 500 (spec 4.4, rule 11). The message contains neither internal addresses nor system errors. */
export class OutboundError extends ExternalFaultError {
  override readonly name = 'OutboundError';

  constructor(
    override readonly code: OutboundCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, code, options);
  }
}
