import { BadRequestError, NotFoundError } from '../../../src/lib/errors.js';
import type { Answer } from '../answer.js';
import { jsonAnswer } from '../presenter.js';
import type { Middleware } from './context.js';

/** Answers requests for which the router has found no endpoint. */
export function noEndpoint(): Middleware {
  return (ctx) => {
    if (!isDecodable(ctx.path)) throw new BadRequestError('The request path is not valid');
    const methods = (ctx.matched ?? []).flatMap((layer) => layer.methods);
    if (methods.length === 0) throw new NotFoundError();
    ctx.state.answer = wrongMethod(methods, ctx.method);
    return Promise.resolve();
  };
}

/** Returns false for a path that no endpoint can have, because nothing declared is spelt like that. */
export function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function wrongMethod(known: readonly string[], method: string): Answer {
  const allowed = new Set([...known.toSorted(), 'OPTIONS']);
  const headers = { Allow: [...allowed].join(', ') };
  if (method !== 'OPTIONS') return jsonAnswer(405, { error: 'Method not allowed' }, headers);
  return { status: 204, headers, contentType: undefined, body: undefined };
}
