import type { RouterContext } from '@koa/router';
import type { Logger } from 'pino';

/**
 * Logs one line when the answer is out or the client is gone. It names the declared path, never
 * the requested one, because ids, queries, headers and bodies are nobody's business in a log.
 */
export function watchAccess(
  ctx: RouterContext,
  about: {
    readonly log: Logger;
    readonly requestId: string;
  },
): void {
  const { req, res } = ctx;
  const started = performance.now();
  res.once('close', () => {
    const line = {
      requestId: about.requestId,
      method: req.method,
      path: ctx._matchedRoute?.toString() ?? '(unknown)',
      status: res.statusCode,
      ms: Math.round((performance.now() - started) * 10) / 10,
    };
    if (res.writableFinished) about.log.info(line, 'request');
    else about.log.info({ ...line, aborted: true }, 'request');
  });
}
