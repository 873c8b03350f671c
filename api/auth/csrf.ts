import type { IncomingMessage } from 'node:http';
import { ForbiddenError } from '../../src/lib/errors.js';
import { sameSecret } from './bearer-token.js';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Requires the session's CSRF token, which other sites cannot read; `publicUrl` is for use behind a proxy. */
export function csrfGuard(publicUrl: string | undefined) {
  const publicHost = publicUrl === undefined ? undefined : new URL(publicUrl).host;

  return (request: IncomingMessage, csrfToken: string): void => {
    if (SAFE_METHODS.has(request.method ?? '') || !isFromElsewhere(request, publicHost)) return;
    const presented = request.headers['x-csrf-token'];
    if (typeof presented === 'string' && sameSecret(presented, csrfToken)) return;
    throw new ForbiddenError('Missing or invalid CSRF token', 'CSRF_TOKEN_REQUIRED');
  };
}

/** Reports whether another site sent the request; sibling subdomains count, because they serve agents. */
function isFromElsewhere(request: IncomingMessage, publicHost: string | undefined): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = request.headers.origin;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const host = new URL(origin).host;
  return host !== request.headers.host?.toLowerCase() && host !== publicHost;
}
