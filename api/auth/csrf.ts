import type { IncomingMessage } from 'node:http';
import { ForbiddenError } from '../../src/lib/errors.js';
import { sameSecret } from './bearer-token.js';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Guards a signed-in browser against requests that another site makes it send: those need the
 * session's own token, which only our site can read.
 *
 * @param publicUrl where people reach this listener, when a proxy hides that from `Host`.
 */
export function csrfGuard(publicUrl: string | undefined) {
  const publicHost = publicUrl === undefined ? undefined : new URL(publicUrl).host;

  return (request: IncomingMessage, csrfToken: string): void => {
    if (SAFE_METHODS.has(request.method ?? '') || !isFromElsewhere(request, publicHost)) return;
    const presented = request.headers['x-csrf-token'];
    if (typeof presented === 'string' && sameSecret(presented, csrfToken)) return;
    throw new ForbiddenError('Missing or invalid CSRF token');
  };
}

/** A sibling subdomain (`same-site`) counts as elsewhere too: agents are served on such. */
function isFromElsewhere(request: IncomingMessage, publicHost: string | undefined): boolean {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return true;
  const origin = request.headers.origin;
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const host = new URL(origin).host;
  return host !== request.headers.host?.toLowerCase() && host !== publicHost;
}
