import type { RouterContext } from '@koa/router';
import type { Logger } from 'pino';
import { whenClosed } from './when-closed.js';

/**
 * Logs one line when the answer is sent or the client has disconnected. It names the declared path, not
 * the requested one: ids, queries, headers and bodies must not reach the log.
 */
export function watchAccess(
  ctx: RouterContext,
  about: {
    readonly log: Logger;
    readonly arrival: {
      readonly requestId: string;
      readonly clientAddress: string;
      /** Id of the user, key or agent, once authenticated. */
      readonly caller?: string;
    };
  },
): void {
  const { req, res } = ctx;
  const { arrival, log } = about;
  const started = performance.now();
  whenClosed(res, () => {
    const line = {
      requestId: arrival.requestId,
      address: arrival.clientAddress,
      caller: arrival.caller,
      method: req.method,
      path: ctx._matchedRoute?.toString() ?? '(unknown)',
      status: res.statusCode,
      ms: Math.round((performance.now() - started) * 10) / 10,
    };
    if (res.writableFinished) log.info(line, 'request');
    else log.info({ ...line, aborted: true }, 'request');
  });
}
