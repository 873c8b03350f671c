import { hashRequest, readIdempotencyKey, type OncePerKey } from '../idempotency.js';
import type { Presenter } from '../presenter.js';
import type { CallMiddleware, PresentedState } from './context.js';

/** Repeats the answer that the request's `Idempotency-Key` has already got. */
export function idempotent(
  route: string,
  oncePerKey: OncePerKey,
  presenter: Presenter,
): CallMiddleware<PresentedState> {
  return async (ctx, next) => {
    const { state } = ctx;
    const { identity, request } = state;
    const key = readIdempotencyKey(request.idempotencyKey);
    if (key === undefined || identity.storesResponse === true) return next();
    const { params, query, body } = request;
    const requestHash = hashRequest(params, query, body);
    const named = { caller: identity.scope, route, key, requestHash };
    const run = async () => {
      await next();
      return state.answer;
    };
    state.answer = await oncePerKey(
      named,
      ({ keep, markFound }) => {
        request.keepAnswer = (db, reply) => keep(db, presenter.present(reply));
        request.markAnswered = markFound;
        return run();
      },
      () => {
        request.isAnswered = true;
        return run();
      },
    );
  };
}
