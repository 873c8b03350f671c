import type { Logger } from 'pino';
import { whenClosed } from '../when-closed.js';
import type { Middleware } from './context.js';

/** Logs a line for each answer, with the declared path: ids, queries, headers and bodies may hold secrets. */
export function accessLog(log: Logger): Middleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const started = performance.now();
    whenClosed(res, () => {
      const line = {
        requestId: state.requestId,
        address: state.clientAddress,
        caller: state.identity?.loggedAs ?? state.identity?.scope,
        method: req.method,
        path: ctx._matchedRoute?.toString() ?? '(unknown)',
        status: res.statusCode,
        ms: Math.round((performance.now() - started) * 10) / 10,
      };
      if (res.writableFinished) log.info(line, 'request');
      else log.info({ ...line, aborted: true }, 'request');
    });
    return next();
  };
}
