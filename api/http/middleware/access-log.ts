import type { Logger } from 'pino';
import type { NoteRequest } from '../../../src/platform/http/request-seconds.js';
import { whenClosed } from '../when-closed.js';
import type { Middleware } from './context.js';

/**
 * Logs a line for each answer and notes its duration, with the declared path: ids, queries, headers and bodies
 * may hold secrets.
 */
export function accessLog(log: Logger, note?: NoteRequest): Middleware {
  return (ctx, next) => {
    const { req, res, state } = ctx;
    const started = performance.now();
    whenClosed(res, () => {
      const ms = performance.now() - started;
      const route = ctx._matchedRoute?.toString();
      const isComplete = res.writableFinished;
      note?.(ctx.method, route, isComplete ? res.statusCode : undefined, ms / 1000);
      const line = {
        requestId: state.requestId,
        address: state.clientAddress,
        caller: state.identity?.loggedAs ?? state.identity?.scope,
        method: req.method,
        path: route ?? '(unknown)',
        status: res.statusCode,
        ms: Math.round(ms * 10) / 10,
      };
      if (isComplete) log.info(line, 'request');
      else log.info({ ...line, aborted: true }, 'request');
    });
    return next();
  };
}
